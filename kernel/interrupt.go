package kernel

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
)

// Interrupts of devices. Each allocated interrupt has a number, which selects a bit in Rung and a vector of the
// processor. When the interrupt arrives, the kernel sets the bit and wakes the Go runtime's poller. The runtime
// then resumes the goroutine that waits for such bits (runtime.loamRung), and that goroutine does the rest.

// Rung holds the bits of the interrupts that have arrived since the runtime last cleared it. It is accessed by
// atomic operations only.
var Rung uint64

// MaxInterrupts is the number of interrupts that can be allocated at a time.
const MaxInterrupts = amd64.VectorDeviceCount

// line is the state of an allocated interrupt.
type line struct {
	used  bool
	wired bool // the interrupt comes from an input of an I/O APIC, and not from a message
	input uint32
	chip  uint8
	flags uint32 // trigger mode and polarity, as flags of the I/O APIC
}

// ioapic is an I/O APIC.
type ioapic struct {
	chip   amd64.IOAPIC
	first  uint32 // global number of the first input of this I/O APIC
	inputs uint32
	id     uint8
}

// addIOAPIC records an I/O APIC, masks all its inputs, and returns their number. first is the global number of its
// first input; id is its ID in an MP table.
func (k *core) addIOAPIC(address uint64, first uint32, id uint8) uint32 {
	if k.ioapicCount == len(k.ioapics) || address >= boot.WindowAtBoot {
		return 0
	}
	chip := amd64.IOAPIC(k.seeRegisters(address))
	io := &k.ioapics[k.ioapicCount]
	io.chip, io.first, io.inputs, io.id = chip, first, chip.Inputs(), id
	k.ioapicCount++
	for input := range io.inputs {
		chip.Route(input, 0, 0, amd64.IOAPICMasked)
	}
	return io.inputs
}

// seeRegisters maps a page of registers of the chipset, uncached, and returns its virtual address. The page is mapped
// in the window (the mapping of physical memory), outside of the machine's memory.
func (k *core) seeRegisters(pa uint64) uintptr {
	page := pa &^ (amd64.BigPageSize - 1)
	k.mustMap(uint64(k.window)+page, page, amd64.BigPageSize, amd64.PageWrite|amd64.PageUncached|amd64.PageGlobal|k.noExecute())
	amd64.InvalidatePage(uint64(k.window) + pa)
	return k.window + uintptr(pa)
}

// allotInterrupt allocates the number of an interrupt. It returns false if none is free.
func (k *core) allotInterrupt() (int, bool) {
	for i := range k.lines {
		if !k.lines[i].used {
			k.lines[i] = line{used: true}
			return i, true
		}
	}
	return 0, false
}

// openMessage allocates a message-signalled interrupt and returns its number, or ENOSPC. The first CPU receives it.
func (k *core) openMessage() int64 {
	i, ok := k.allotInterrupt()
	if !ok {
		return -int64(linux.ENOSPC)
	}
	return int64(i)
}

// openLine allocates an interrupt for the line with a global number and unmasks the line. flags are the I/O APIC's
// trigger mode and polarity. It returns the interrupt's number, or ENXIO if no I/O APIC has that input.
func (k *core) openLine(gsi uint64, flags uint32) int64 {
	for chip := range k.ioapics[:k.ioapicCount] {
		io := &k.ioapics[chip]
		if gsi < uint64(io.first) || gsi-uint64(io.first) >= uint64(io.inputs) {
			continue
		}
		i, ok := k.allotInterrupt()
		if !ok {
			return -int64(linux.ENOSPC)
		}
		k.lines[i] = line{used: true, wired: true, chip: uint8(chip), input: uint32(gsi) - io.first, flags: flags & (amd64.IOAPICLow | amd64.IOAPICLevel)}
		l := &k.lines[i]
		io.chip.Route(l.input, l.vector(i), k.cpus[0].apic, l.flags)
		return int64(i)
	}
	return -int64(linux.ENXIO)
}

// vector returns the processor's vector for an interrupt number.
func (l *line) vector(number int) uint32 { return amd64.VectorDevice + uint32(number) }

// maskLine masks a line at its I/O APIC.
func (k *core) maskLine(l *line, number int) {
	k.ioapics[l.chip].chip.Change(l.input, l.vector(number), l.flags|amd64.IOAPICMasked)
}

// unmaskLine unmasks a line at its I/O APIC.
func (k *core) unmaskLine(l *line, number int) {
	k.ioapics[l.chip].chip.Change(l.input, l.vector(number), l.flags)
}

// doneInterrupt unmasks a level-triggered line after its driver has served the device. For other interrupts it does
// nothing.
func (k *core) doneInterrupt(number uint64) int64 {
	if number >= MaxInterrupts || !k.lines[number].used {
		return -int64(linux.EINVAL)
	}
	if l := &k.lines[number]; l.wired && l.flags&amd64.IOAPICLevel != 0 {
		k.unmaskLine(l, int(number))
	}
	return 0
}

// closeInterrupt masks and releases an interrupt.
func (k *core) closeInterrupt(number uint64) int64 {
	if number >= MaxInterrupts || !k.lines[number].used {
		return -int64(linux.EINVAL)
	}
	if l := &k.lines[number]; l.wired {
		k.maskLine(l, int(number))
	}
	k.lines[number] = line{}
	return 0
}

// ring records a device interrupt that has arrived, and wakes the runtime's poller. A level-triggered line
// stays masked until doneInterrupt.
func (k *core) ring(c *cpu, number int) {
	if l := &k.lines[number]; l.wired && l.flags&amd64.IOAPICLevel != 0 {
		k.maskLine(l, number) // doneInterrupt unmasks the line
	}
	if number == k.serialInterrupt {
		k.receive(c)
		return
	}
	atomic.OrUint64(&Rung, 1<<number)
	k.callPoller()
}
