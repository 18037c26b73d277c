package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
)

// Calls that drivers make to the kernel. Drivers are ordinary Go above the runtime, and Linux does not have these
// calls. The callers are package kernel/device; the runtime for CallPoll, CallStandIn and CallShare (loam_device.go,
// loam_poller.go, loam_emulation.go); and package kernel/user for the calls from CallTake on (user.go). The comments list the arguments,
// then the result. Drivers need no call to access I/O ports, device registers and device memory.
const (
	CallMapRegisters = 0x1000 + iota // arguments: physical address, size; result: address at which the registers are mapped
	CallAllocate                     // argument: number of pages; result: physical address of contiguous zeroed pages
	CallMessage                      // no arguments; result: number of a new message-signalled interrupt
	CallLine                         // arguments: global number of a line, flags of the I/O APIC; result: number of a new interrupt
	CallDone                         // argument: number of an interrupt; unmasks its level-triggered line
	CallClose                        // argument: number of an interrupt; releases it
	CallStir                         // arguments: two words of unpredictable random bits; mixes them into the generator of random numbers
	CallPoll                         // argument: nanoseconds; waits for interrupts (see poll)
	CallShare                        // no arguments; wakes an idle CPU for ready threads without delay
	CallTake                         // arguments: address and length of an array; result: number of free pages whose addresses were stored there
	CallGive                         // arguments: address and length of an array; frees the physical pages in it
	CallTakeTable                    // no arguments; result: physical address of a zeroed page for a page table, from the reserve if need be
	CallTakeBlock                    // no arguments; result: physical address of a free block, a big page, which is not zeroed
	CallGiveBlock                    // argument: physical address of a block, which CallTakeBlock returned; frees it
	CallSpace                        // argument: physical address of a zeroed page for the root table of ring 3, or 0 (see Isolated); result: physical address of the root table of a new address space
	CallFlush                        // arguments: set of CPUs, 1 to wait for idle CPUs too; makes these CPUs drop all translations; result: 1 if an idle CPU has not yet done so
	CallRetire                       // arguments: root table of an address space, set of the CPUs that may use it; none uses it when the call returns
	CallKick                         // argument: number of a CPU; interrupts it
	CallSave                         // argument: number of a CPU; makes it save the x87 state of the context that it holds
	CallMove                         // argument: number of a CPU; the calling thread continues there when the call returns
	CallWhere                        // no arguments; result: number of the calling CPU
	CallClock                        // argument: physical address of a page for vdso.Data; from now on, the kernel stores the state of its clocks there
	CallStandIn                      // no arguments; waits until a wake for the poller must be made (poller.go)
)

// deviceCall serves the calls from CallMapRegisters to CallStir and passes all others to userCall.
func (k *core) deviceCall(c *cpu, f *amd64.Frame) int64 {
	switch f.AX {
	case CallMapRegisters:
		return k.mapRegisters(f.DI, f.SI)
	case CallAllocate:
		if pa, ok := k.pages.Contiguous(f.DI); ok {
			clear(bytesAt(uint64(k.window)+pa, int(f.DI*amd64.PageSize)))
			return int64(pa)
		}
		return -int64(linux.ENOMEM)
	case CallMessage:
		return k.openMessage()
	case CallLine:
		return k.openLine(f.DI, uint32(f.SI))
	case CallDone:
		return k.doneInterrupt(f.DI)
	case CallClose:
		return k.closeInterrupt(f.DI)
	case CallStir:
		k.stir([4]uint64{f.DI, f.SI})
		k.seeded.Store(true)
		return 0
	}
	return k.userCall(c, f)
}

// mapRegisters maps the registers of a device, uncached, at a new address and returns the address. It returns EBUSY
// for a range that contains ordinary memory.
func (k *core) mapRegisters(pa, size uint64) int64 {
	const most, mostSize = 1 << 52, 1 << 30
	start := pa &^ (amd64.PageSize - 1)
	end := pages(pa + size)
	switch {
	case size == 0 || size > mostSize || pa >= most-mostSize:
		return -int64(linux.EINVAL)
	case k.overlapsMemory(start, end):
		return -int64(linux.EBUSY)
	}
	// The region has no rights in dynamic. No call of the program passes this address, so munmap and similar calls
	// never free these pages, which are not memory.
	va, ok := k.dynamic.Reserve(0, end-start, amd64.PageSize, 0)
	if !ok {
		return -int64(linux.ENOMEM)
	}
	for at := start; at < end; at += amd64.PageSize {
		if !k.tables.Map(va+at-start, at, amd64.PageSize, amd64.PageWrite|amd64.PageUncached|k.noExecute(), k.allocPage) {
			return -int64(linux.ENOMEM)
		}
	}
	return int64(va + pa - start)
}

// overlapsMemory reports whether a range contains ordinary memory.
func (k *core) overlapsMemory(start, end uint64) bool {
	for _, r := range k.machine.Usable[:k.machine.Ranges] {
		if start < r.End && r.Start < end {
			return true
		}
	}
	return false
}

// MessageOf returns the address and the data that a device writes to raise interrupt number (SDM volume 3, 11.11). The first
// CPU receives the interrupt.
func MessageOf(number int) (address uint64, data uint32) {
	k := &machineCore
	const base, cpuShift = 0xfee0_0000, 12
	return base | uint64(k.cpus[0].apic)<<cpuShift, uint32(amd64.VectorDevice + number)
}

// Physical returns the physical address of a byte of the program's memory, for use by devices. It returns false if
// no page is mapped there, or while a big page is being split into small ones.
//
// Ordinary Go may call it for a byte that it has read before. Then the page exists and stays while Go refers to it,
// and so do the page tables that lead to it.
func Physical(va uint64) (uint64, bool) {
	k := &machineCore
	entry, size := k.tables.Lookup(va)
	if entry&amd64.PagePresent == 0 {
		return 0, false
	}
	return amd64.Physical(entry) + va&(size-1), true
}

// WindowTo returns the virtual address of a physical address in the window, the kernel's mapping of all
// physical memory.
func WindowTo(pa uint64) uintptr { return boot.Window + uintptr(pa) }

// InWindow returns the physical address of the first of n bytes in the window, which are then contiguous. It returns false if
// they are not in the window.
func InWindow(va uint64, n int) (pa uint64, ok bool) {
	pa = va - boot.Window
	return pa, va >= boot.Window && pa+uint64(n) <= machineCore.windowEnd
}

// FirmwareTables returns the physical address of ACPI's root pointer (RSDP) if the monitor has passed it, else 0.
func FirmwareTables() uint64 {
	k := &machineCore
	return k.machine.RSDP
}

// UsableMemory returns the ranges of ordinary memory. The caller must not change them.
func UsableMemory() []boot.Range {
	k := &machineCore
	return k.machine.Usable[:k.machine.Ranges]
}

// FirmwareMemory returns physical memory, for package boot/acpi; nil if the range is not mapped.
func FirmwareMemory(pa, size uint64) []byte {
	k := &machineCore
	return k.physicalAt(pa, size)
}

// CommandLine returns the kernel command line of the monitor. It is passed in addition to the program and its configuration.
func CommandLine() []byte {
	k := &machineCore
	c := k.machine.CommandLine
	return k.physicalAt(c.Start, c.Size())
}
