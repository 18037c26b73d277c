package kernel

import (
	"sync/atomic"
	"syscall"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/thread"
)

// Interrupts of devices. Each that has been allotted has a number, which is a bit
// in Rung and a vector of the processor. When it comes the bit is set and the Go
// runtime's poller is woken, which lets the goroutine go on that waits for such
// bits (runtime.loamRung); the rest is that goroutine's business.

// Rung has the bits of the interrupts that have come since the runtime took them
// out. It is changed by atomic operations only.
var Rung uint64

// MaxInterrupts is how many there can be at a time.
const MaxInterrupts = amd64.VectorDeviceCount

// line is what an interrupt that comes by a line needs.
type line struct {
	used  bool
	wired bool // by an input of an I/O APIC, and not by a message
	input uint32
	chip  uint8
	flags uint32 // of the I/O APIC
}

var lines [MaxInterrupts]line

// ioapics are the I/O APICs of the machine; set once.
var ioapics [8]struct {
	chip   amd64.IOAPIC
	first  uint32 // global number of its first input
	inputs uint32
	id     uint8
}

var ioapicCount int

// addIOAPIC takes note of one, masks all its inputs, and returns how many it has; first
// is the number of its first input among those of all chips, id its name in an MP table.
func addIOAPIC(address uint64, first uint32, id uint8) uint32 {
	if ioapicCount == len(ioapics) || address >= boot.WindowAtBoot {
		return 0
	}
	chip := amd64.IOAPIC(seeRegisters(address))
	io := &ioapics[ioapicCount]
	io.chip, io.first, io.inputs, io.id = chip, first, chip.Inputs(), id
	ioapicCount++
	for input := range io.inputs {
		chip.Route(input, 0, 0, amd64.IOAPICMasked)
	}
	return io.inputs
}

// seeRegisters has registers of the machine's own, which lie where no memory is, seen
// through the window, and returns where.
func seeRegisters(pa uint64) uintptr {
	page := pa &^ (amd64.BigPageSize - 1)
	mustMap(boot.Window+page, page, amd64.BigPageSize, amd64.PageWrite|amd64.PageUncached|amd64.PageGlobal|noExecute())
	amd64.InvalidatePage(boot.Window + pa)
	return windowAddress + uintptr(pa)
}

// allotInterrupt finds an interrupt that is not used.
func allotInterrupt() (int, bool) {
	for i := range lines {
		if !lines[i].used {
			lines[i] = line{used: true}
			return i, true
		}
	}
	return 0, false
}

// openMessage allots an interrupt that a device raises by a message. The first CPU
// gets it.
func openMessage() int64 {
	i, ok := allotInterrupt()
	if !ok {
		return -int64(syscall.ENOSPC)
	}
	return int64(i)
}

// openLine connects an interrupt to a line by its global number; flags are the I/O
// APIC's.
func openLine(gsi uint64, flags uint32) int64 {
	for chip := range ioapics[:ioapicCount] {
		io := &ioapics[chip]
		if gsi < uint64(io.first) || gsi-uint64(io.first) >= uint64(io.inputs) {
			continue
		}
		i, ok := allotInterrupt()
		if !ok {
			return -int64(syscall.ENOSPC)
		}
		lines[i] = line{used: true, wired: true, chip: uint8(chip), input: uint32(gsi) - io.first, flags: flags & (amd64.IOAPICLow | amd64.IOAPICLevel)}
		l := &lines[i]
		io.chip.Route(l.input, l.vector(i), cpus[0].apic, l.flags)
		return int64(i)
	}
	return -int64(syscall.ENXIO)
}

// vector is what the line interrupts with.
func (l *line) vector(number int) uint32 { return amd64.VectorDevice + uint32(number) }

// mask keeps the line from interrupting.
func (l *line) mask(number int) {
	ioapics[l.chip].chip.Change(l.input, l.vector(number), l.flags|amd64.IOAPICMasked)
}

// unmask ends that.
func (l *line) unmask(number int) {
	ioapics[l.chip].chip.Change(l.input, l.vector(number), l.flags)
}

// doneInterrupt lets a line that stays on while its device wants attention
// interrupt again.
func doneInterrupt(number uint64) int64 {
	if number >= MaxInterrupts || !lines[number].used {
		return -int64(syscall.EINVAL)
	}
	if l := &lines[number]; l.wired && l.flags&amd64.IOAPICLevel != 0 {
		l.unmask(int(number))
	}
	return 0
}

// closeInterrupt gives an interrupt back.
func closeInterrupt(number uint64) int64 {
	if number >= MaxInterrupts || !lines[number].used {
		return -int64(syscall.EINVAL)
	}
	if l := &lines[number]; l.wired {
		l.mask(int(number))
	}
	lines[number] = line{}
	return 0
}

// ring serves the interrupt of a device.
func ring(c *cpu, number int) {
	if l := &lines[number]; l.wired && l.flags&amd64.IOAPICLevel != 0 {
		l.mask(number) // until doneInterrupt
	}
	if number == serialInterrupt {
		receive(c)
		return
	}
	atomic.OrUint64(&Rung, 1<<number)
	threads.Wake(keyPoll, thread.Max, 0)
}
