package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/boot/acpi"
	"loam/kernel/timekeeper"
)

// The clock by which the time stamp counter is measured and kept right: that of the
// hypervisor, if it has one that says so (KVM); else the HPET, ACPI's timer, or the
// interval timer, which every PC has. It begins again after some time, which package
// timekeeper sees through.

// referenceKind is which one.
type referenceKind int

const (
	intervalTimer referenceKind = iota
	hpet
	powerTimer
	hypervisor
)

// reference is that clock; set once.
var reference struct {
	kind referenceKind
	hpet amd64.HPET
	port uint16  // of the powerTimer
	page uintptr // which the hypervisor fills
}

// openReference finds the best that there is.
func openReference() {
	firmware, _ := openFirmware()
	const nano, femto = 1e9, 1e6 // in a second; femtoseconds in a nanosecond
	switch {
	case openHypervisorClock():
		reference.kind = hypervisor
		clock.Reference = timekeeper.Reference{Bits: 64, Num: 1, Den: 1}
	case openHPET(firmware.HPET()):
		reference.kind = hpet
		clock.Reference = timekeeper.Reference{Bits: 32, Num: uint64(reference.hpet.Start()), Den: femto}
	case openPowerTimer(&firmware):
		reference.kind = powerTimer
		clock.Reference = timekeeper.Reference{Bits: 24, Num: nano, Den: acpi.TimerFrequency}
	default:
		if !amd64.StartPIT() {
			must("the machine has no clock to measure its own by: no HPET, no ACPI timer and no interval timer (8254)")
		}
		clock.Reference = timekeeper.Reference{Bits: 16, Num: nano, Den: amd64.PITFrequency}
	}
}

// sample reads the reference. It is the best of a few readings, since a virtual CPU
// may be away in the middle of one.
func sample() timekeeper.Sample {
	best := takeSample()
	for range 4 {
		if s := takeSample(); s.Doubt < best.Doubt {
			best = s
		}
	}
	return best
}

func takeSample() timekeeper.Sample {
	var value uint64
	before := amd64.Timestamp()
	switch reference.kind {
	case intervalTimer:
		amd64.HoldPIT()
		after := amd64.Timestamp()
		return timekeeper.Between(before, uint64(amd64.ReadPIT()), after)
	case hpet:
		value = uint64(reference.hpet.Counter())
	case powerTimer:
		const bits24 = 1<<24 - 1
		value = uint64(amd64.In32(reference.port)) & bits24
	case hypervisor:
		value = hypervisorTime()
	}
	return timekeeper.Between(before, value, amd64.Timestamp())
}

// openHPET takes the HPET, if there is one at an address and it makes sense.
func openHPET(pa uint64) bool {
	if pa == 0 || pa >= boot.WindowAtBoot || overlapsMemory(pa, pa+amd64.PageSize) {
		return false
	}
	reference.hpet = amd64.HPET(seeRegisters(pa))
	period := reference.hpet.Start()
	if period == 0 || period > amd64.HPETMostPeriod {
		return false
	}
	before := reference.hpet.Counter()
	for range int(1e5) { // some milliseconds
		if reference.hpet.Counter() != before {
			return true
		}
	}
	return false
}

// openPowerTimer takes ACPI's timer, if it runs.
func openPowerTimer(firmware *acpi.Tables) bool {
	r, ok := firmware.Timer()
	if !ok || r.Space != acpi.SpacePort {
		return false
	}
	reference.port = uint16(r.Address)
	before := amd64.In32(reference.port)
	for range int(1e5) {
		if amd64.In32(reference.port) != before {
			return true
		}
	}
	return false
}

// Registers and bits of KVM's clock: Linux, Documentation/virt/kvm/x86.
const (
	kvmWallClock   = 0x4b564d00
	kvmSystemTime  = 0x4b564d01
	kvmEnable      = 1
	kvmClockSource = 1 << 3  // of CPUID: these registers are there
	kvmClockStable = 1 << 24 // and one page does for all CPUs
)

// openHypervisorClock has KVM keep its clock in a page, if it can.
func openHypervisorClock() bool {
	if amd64.HypervisorFeatures()&(kvmClockSource|kvmClockStable) != kvmClockSource|kvmClockStable {
		return false
	}
	pa, ok := frames.Alloc()
	if !ok {
		must(noMemory)
	}
	reference.page = windowAddress + uintptr(pa)
	clear(bytesAt(uint64(reference.page), amd64.PageSize))
	amd64.WriteMSR(kvmSystemTime, pa|kvmEnable)
	p := readHypervisorClock()
	return p.Valid() && p.Stable
}

// readHypervisorClock reads it whole, or, if that never happens, what is not valid.
func readHypervisorClock() timekeeper.PVClock {
	b := bytesAt(uint64(reference.page), timekeeper.PVSize)
	for range 1000 {
		p := timekeeper.ParsePVClock(b)
		if p.Valid() && *word32(uint64(reference.page)) == p.Version {
			return p
		}
		amd64.Pause()
	}
	return timekeeper.PVClock{}
}

// hypervisorTime is the hypervisor's time in nanoseconds.
func hypervisorTime() uint64 { return readHypervisorClock().At(amd64.Timestamp()) }

// counterScale is what the machine itself says of the speed of the counter, as
// nanoseconds for each tick, with 32 bits of fraction; 0 if it says nothing, or
// something that differs from what was measured by more than a hundredth.
func counterScale(measured uint64) uint64 {
	scale := uint64(0)
	if reference.kind == hypervisor {
		scale = readHypervisorClock().Scale()
	} else if hz := amd64.CounterFrequency(); hz != 0 {
		scale = timekeeper.Scale(1e9, hz)
	}
	const part = 100
	if scale > measured+measured/part || scale < measured-measured/part {
		return 0
	}
	return scale
}
