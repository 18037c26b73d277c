package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/boot"
)

// What drivers, which are ordinary Go above the runtime, ask of the kernel: calls
// that Linux does not have. Package kernel/device makes them, but for the last two,
// which are the runtime's (loam_device.go, loam_wake.go); and what a driver
// does itself needs none: ports are read by instructions, registers and memory of
// devices by their addresses.
const (
	CallMapRegisters = 0x1000 + iota // physical address, size: the address where they are seen
	CallAllocate                     // pages: the physical address of pages side by side
	CallMessage                      // : the number of an interrupt that comes by a message
	CallLine                         // global number, flags of the I/O APIC: the number of an interrupt
	CallDone                         // number of an interrupt
	CallClose                        // number of an interrupt
	CallStir                         // two words of random bits, which nobody can guess
	CallPoll                         // nanoseconds: waits for interrupts (see poll)
	CallShare                        // : what is ready is for a CPU that is idle, now
)

// deviceCall serves them.
func deviceCall(f *amd64.Frame) int64 {
	switch f.AX {
	case CallMapRegisters:
		return mapRegisters(f.DI, f.SI)
	case CallAllocate:
		if pa, ok := frames.Contiguous(f.DI); ok {
			clear(bytesAt(boot.Window+pa, int(f.DI*amd64.PageSize)))
			return int64(pa)
		}
		return -int64(syscall.ENOMEM)
	case CallMessage:
		return openMessage()
	case CallLine:
		return openLine(f.DI, uint32(f.SI))
	case CallDone:
		return doneInterrupt(f.DI)
	case CallClose:
		return closeInterrupt(f.DI)
	case CallStir:
		stir([4]uint64{f.DI, f.SI})
		seeded.Store(true)
		return 0
	}
	return -int64(syscall.ENOSYS)
}

// mapRegisters shows registers of a device at an address of their own, where
// nothing is cached.
func mapRegisters(pa, size uint64) int64 {
	const most, mostSize = 1 << 52, 1 << 30
	start := pa &^ (amd64.PageSize - 1)
	end := pages(pa + size)
	switch {
	case size == 0 || size > mostSize || pa >= most-mostSize:
		return -int64(syscall.EINVAL)
	case overlapsMemory(start, end):
		return -int64(syscall.EBUSY)
	}
	// Without rights in dynamic: munmap and the like find nothing to give back that
	// is not memory, since no call of the program's leads here.
	va, ok := dynamic.Reserve(0, end-start, amd64.PageSize, 0)
	if !ok {
		return -int64(syscall.ENOMEM)
	}
	for at := start; at < end; at += amd64.PageSize {
		if !tables.Map(va+at-start, at, amd64.PageSize, amd64.PageWrite|amd64.PageUncached|noExecute(), allocFrame) {
			return -int64(syscall.ENOMEM)
		}
	}
	return int64(va + pa - start)
}

// overlapsMemory reports whether a range has ordinary memory in it.
func overlapsMemory(start, end uint64) bool {
	for _, r := range UsableMemory() {
		if start < r.End && r.Start < end {
			return true
		}
	}
	return false
}

// MessageOf is what a device writes, and where, to raise an interrupt: SDM volume
// 3, 11.11. The first CPU gets it.
func MessageOf(number int) (address uint64, data uint32) {
	const base, cpuShift = 0xfee0_0000, 12
	return base | uint64(cpus[0].apic)<<cpuShift, uint32(amd64.VectorDevice + number)
}

// Physical is where a byte of the program's memory is for devices; false if no
// page is there, or none for a moment, while a big page becomes small ones. It may be
// called by ordinary Go if the byte has been read before: then there is a page, which
// stays while Go refers to it, and so do the tables that lead there.
func Physical(va uint64) (uint64, bool) {
	entry, size := tables.Lookup(va)
	if entry&amd64.PagePresent == 0 {
		return 0, false
	}
	return amd64.Physical(entry) + va&(size-1), true
}

// WindowTo is where memory at a physical address is seen.
func WindowTo(pa uint64) uintptr { return windowAddress + uintptr(pa) }

// FirmwareTables is where ACPI's tables begin, if the monitor has said so, else 0.
func FirmwareTables() uint64 { return machine.RSDP }

// UsableMemory is where ordinary memory is.
func UsableMemory() []boot.Range { return machine.Usable[:machine.Ranges] }

// FirmwareMemory is physical memory, for package boot/acpi; nil if it is not seen.
func FirmwareMemory(pa, size uint64) []byte { return physicalAt(pa, size) }

// CommandLine is what the monitor gives beside the program and its configuration.
func CommandLine() []byte {
	c := machine.CommandLine
	return physicalAt(c.Start, c.Size())
}
