package kernel

import (
	"syscall"
	"testing"
	"unsafe"

	"loam/abi/linux"
	"loam/arch/amd64"
)

// The processor of a model of a machine (model_test.go): the functions of package arch/amd64 that each execute one
// instruction. In a virtual machine they are assembly. Here they act on the CPU of the model that is executing.
//
// The program's memory is memory of the host at the same addresses. The host's mapping of a page plays the part of an entry of
// the processor's TLB: it changes only when the code under test flushes the page. A page is then accessible if the page tables,
// which that code has written, allow it.

//go:linkname modelIn8 loam/arch/amd64.In8
func modelIn8(port uint16) uint8 { return executing.machine.in8(port) }

//go:linkname modelOut8 loam/arch/amd64.Out8
func modelOut8(port uint16, v uint8) { executing.machine.out8(port, v) }

//go:linkname modelIn16 loam/arch/amd64.In16
func modelIn16(uint16) uint16 { return 1<<16 - 1 }

//go:linkname modelIn32 loam/arch/amd64.In32
func modelIn32(port uint16) uint32 { return executing.machine.in32(port) }

//go:linkname modelOut16 loam/arch/amd64.Out16
func modelOut16(uint16, uint16) {}

//go:linkname modelOut32 loam/arch/amd64.Out32
func modelOut32(port uint16, v uint32) { executing.machine.out32(port, v) }

//go:linkname modelCPUID loam/arch/amd64.CPUID
func modelCPUID(_, _ uint32) (eax, ebx, ecx, edx uint32) { return 0, 0, 0, 0 }

//go:linkname modelReadMSR loam/arch/amd64.ReadMSR
func modelReadMSR(msr uint32) uint64 { return executing.readMSR(msr) }

//go:linkname modelWriteMSR loam/arch/amd64.WriteMSR
func modelWriteMSR(msr uint32, v uint64) { executing.writeMSR(msr, v) }

//go:linkname modelReadCR0 loam/arch/amd64.ReadCR0
func modelReadCR0() uint64 { return 0 }

//go:linkname modelWriteCR0 loam/arch/amd64.WriteCR0
func modelWriteCR0(uint64) {}

//go:linkname modelReadCR2 loam/arch/amd64.ReadCR2
func modelReadCR2() uint64 { return executing.cr2 }

//go:linkname modelReadCR3 loam/arch/amd64.ReadCR3
func modelReadCR3() uint64 { return executing.cr3 }

//go:linkname modelWriteCR3 loam/arch/amd64.WriteCR3
func modelWriteCR3(v uint64) { executing.writeCR3(v) }

//go:linkname modelReadCR4 loam/arch/amd64.ReadCR4
func modelReadCR4() uint64 { return 0 }

//go:linkname modelWriteCR4 loam/arch/amd64.WriteCR4
func modelWriteCR4(uint64) {}

//go:linkname modelWriteXCR0 loam/arch/amd64.WriteXCR0
func modelWriteXCR0(uint64) {}

//go:linkname modelInvalidatePage loam/arch/amd64.InvalidatePage
func modelInvalidatePage(va uint64) { executing.invalidatePage(va) }

//go:linkname modelLoadGDT loam/arch/amd64.LoadGDT
func modelLoadGDT(uintptr, uint16) {}

//go:linkname modelLoadIDT loam/arch/amd64.LoadIDT
func modelLoadIDT(uintptr, uint16) {}

//go:linkname modelLoadTask loam/arch/amd64.LoadTask
func modelLoadTask(uint16) {}

//go:linkname modelLoadLocal loam/arch/amd64.LoadLocal
func modelLoadLocal(uint16) {}

//go:linkname modelTimestamp loam/arch/amd64.Timestamp
func modelTimestamp() uint64 { return executing.machine.timestamp() }

//go:linkname modelXSave loam/arch/amd64.XSave
func modelXSave(uintptr, uint32) {}

//go:linkname modelRandom loam/arch/amd64.Random
func modelRandom() (v uint64, ok bool) { return executing.machine.rng.Uint64(), true }

//go:linkname modelFence loam/arch/amd64.Fence
func modelFence() {}

//go:linkname modelPause loam/arch/amd64.Pause
func modelPause() { executing.pause() }

//go:linkname modelDoze loam/arch/amd64.Doze
func modelDoze() { executing.doze() }

//go:linkname modelHalt loam/arch/amd64.Halt
func modelHalt() { panic(machineEnds{}) }

//go:linkname modelSymbol runtime.loamSymbol
func modelSymbol(uintptr) (name, file string, line int, frameless bool) { return "", "", 0, false }

// hostMap calls mmap(2) on the host. fd is -1 for memory without content and without rights, which only reserves addresses.
func hostMap(addr uintptr, size uint64, prot, fd int, offset uint64) uintptr {
	flags := linux.MAP_SHARED
	if fd < 0 {
		flags = linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_NORESERVE
	}
	if addr != 0 {
		flags |= linux.MAP_FIXED
	}
	at, _, errno := syscall.Syscall6(linux.SYS_MMAP, addr, uintptr(size), uintptr(prot), uintptr(flags), uintptr(fd), uintptr(offset))
	if errno != 0 {
		panic(errno)
	}
	return at
}

// hostUnmap frees memory of the host.
func hostUnmap(addr uintptr, size uint64) {
	syscall.Syscall(linux.SYS_MUNMAP, addr, uintptr(size), 0)
}

// hostMemory returns a file of the host for the physical memory of a machine.
func hostMemory(t testing.TB, size uint64) (fd int) {
	name := []byte("memory\x00")
	n, _, errno := syscall.Syscall(linux.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name[0])), 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if err := syscall.Ftruncate(int(n), int64(size)); err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func closeHost(fd int) { syscall.Close(fd) }

// enter is the entry code of the model: it calls Enter and checks the frame that is to be resumed.
func (p *modelCPU) enter() {
	page := p.page()
	frameAt, _ := Enter(addressOf(p.cpu), addressOf(frameOf(page)))
	p.resumes(frameAt)
}

// resumes checks that the frame that the kernel resumes belongs to the CPU's current thread.
func (p *modelCPU) resumes(frameAt uintptr) {
	if want := addressOf(frameOf(p.page())); frameAt != want {
		p.machine.fail("CPU %d resumes the frame at %#x, want %#x of thread %d", p.cpu.number, frameAt, want, p.cpu.current)
	}
}

// memory returns a word of the program's memory, for which the CPU has a translation (access).
func (p *modelCPU) memory(addr uint64) *uint64 {
	return word(uint64(p.machine.core.window) + amd64.Physical(p.tlb[addr&^(amd64.PageSize-1)]) + addr%amd64.PageSize)
}

// interrupted enters the kernel for an interrupt of a CPU that has halted while it waits for the kernel's lock, as the entry code does.
func (p *modelCPU) interrupted(vector uint64) {
	p.interruptFrame = amd64.Frame{Vector: vector} // a field, since the stack of a goroutine may move
	Interrupted(addressOf(p.cpu), addressOf(&p.interruptFrame))
}
