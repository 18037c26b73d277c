package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/boot/acpi"
	"loam/kernel/timekeeper"
)

// The reference clock, which calibrates the time stamp counter and keeps it correct. It is the first of these that
// exists: the hypervisor's clock (KVM), the HPET, ACPI's timer, and the interval timer that every PC has. All but
// the first wrap around; package timekeeper handles that.

// referenceKind is a kind of reference clock.
type referenceKind int

const (
	intervalTimer referenceKind = iota
	hpet
	powerTimer
	hypervisor
)

// referenceClock is the reference clock.
type referenceClock struct {
	kind referenceKind
	hpet amd64.HPET
	port uint16  // I/O port of ACPI's timer (powerTimer)
	page uintptr // address of the page that the hypervisor writes (hypervisor)
}

// openReference selects the best reference clock. Without any it ends the machine.
func (k *core) openReference() {
	firmware, _ := k.openFirmware()
	const nano, femto = 1e9, 1e6 // nanoseconds per second, and femtoseconds per nanosecond
	switch {
	case k.openHypervisorClock():
		k.reference.kind = hypervisor
		k.clock.Reference = timekeeper.Reference{Bits: 64, Num: 1, Den: 1}
	case k.openHPET(firmware.HPET()):
		k.reference.kind = hpet
		k.clock.Reference = timekeeper.Reference{Bits: 32, Num: uint64(k.reference.hpet.Start()), Den: femto}
	case k.openPowerTimer(&firmware):
		k.reference.kind = powerTimer
		k.clock.Reference = timekeeper.Reference{Bits: 24, Num: nano, Den: acpi.TimerFrequency}
	default:
		if !amd64.StartPIT() {
			k.must("the machine has no clock to measure its own by: no HPET, no ACPI timer and no interval timer (8254)")
		}
		k.clock.Reference = timekeeper.Reference{Bits: 16, Num: nano, Den: amd64.PITFrequency}
	}
}

// sample reads the reference. It returns the most accurate of five readings, since a virtual CPU may be descheduled
// during one.
func (k *core) sample() timekeeper.Sample {
	best := k.takeSample()
	for range 4 {
		if s := k.takeSample(); s.Doubt < best.Doubt {
			best = s
		}
	}
	return best
}

// takeSample reads the reference once, between two readings of the counter.
func (k *core) takeSample() timekeeper.Sample {
	var value uint64
	before := amd64.Timestamp()
	switch k.reference.kind {
	case intervalTimer:
		amd64.HoldPIT()
		after := amd64.Timestamp()
		return timekeeper.Between(before, uint64(amd64.ReadPIT()), after)
	case hpet:
		value = uint64(k.reference.hpet.Counter())
	case powerTimer:
		const bits24 = 1<<24 - 1
		value = uint64(amd64.In32(k.reference.port)) & bits24
	case hypervisor:
		value = k.hypervisorTime()
	}
	return timekeeper.Between(before, value, amd64.Timestamp())
}

// openHPET selects the HPET at a physical address, if it exists and counts.
func (k *core) openHPET(pa uint64) bool {
	if pa == 0 || pa >= boot.WindowAtBoot || k.overlapsMemory(pa, pa+amd64.PageSize) {
		return false
	}
	k.reference.hpet = amd64.HPET(k.seeRegisters(pa))
	period := k.reference.hpet.Start()
	if period == 0 || period > amd64.HPETMostPeriod {
		return false
	}
	before := k.reference.hpet.Counter()
	for range int(1e5) { // the loop takes some milliseconds
		if k.reference.hpet.Counter() != before {
			return true
		}
	}
	return false
}

// openPowerTimer selects ACPI's timer, if it exists and counts.
func (k *core) openPowerTimer(firmware *acpi.Tables) bool {
	r, ok := firmware.Timer()
	if !ok || r.Space != acpi.SpacePort {
		return false
	}
	k.reference.port = uint16(r.Address)
	before := amd64.In32(k.reference.port)
	for range int(1e5) {
		if amd64.In32(k.reference.port) != before {
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
	kvmClockSource = 1 << 3  // bit of CPUID: the MSRs of KVM's clock exist
	kvmClockStable = 1 << 24 // bit of CPUID: the page of one CPU is valid for all CPUs
)

// openHypervisorClock enables KVM's clock, if KVM offers a stable one.
func (k *core) openHypervisorClock() bool {
	if amd64.HypervisorFeatures()&(kvmClockSource|kvmClockStable) != kvmClockSource|kvmClockStable {
		return false
	}
	pa, ok := k.pages.Alloc()
	if !ok {
		k.must(noMemory)
	}
	k.reference.page = k.window + uintptr(pa)
	clear(bytesAt(uint64(k.reference.page), amd64.PageSize))
	amd64.WriteMSR(kvmSystemTime, pa|kvmEnable)
	p := k.readHypervisorClock()
	return p.Valid() && p.Stable
}

// readHypervisorClock returns a consistent copy of the clock's page. After 1000 failed attempts it returns a
// PVClock that is not valid.
func (k *core) readHypervisorClock() timekeeper.PVClock {
	b := bytesAt(uint64(k.reference.page), timekeeper.PVSize)
	for range 1000 {
		p := timekeeper.ParsePVClock(b)
		if p.Valid() && *word32(uint64(k.reference.page)) == p.Version {
			return p
		}
		amd64.Pause()
	}
	return timekeeper.PVClock{}
}

// hypervisorTime returns the hypervisor's time in nanoseconds.
func (k *core) hypervisorTime() uint64 { return k.readHypervisorClock().At(amd64.Timestamp()) }

// counterScale returns the counter's rate as the machine itself reports it, in nanoseconds for each tick with 32
// fraction bits. It returns 0 if the machine reports none, or one that differs from the measured rate by more than
// one percent.
func (k *core) counterScale(measured uint64) uint64 {
	scale := uint64(0)
	if k.reference.kind == hypervisor {
		scale = k.readHypervisorClock().Scale()
	} else if hz := amd64.CounterFrequency(); hz != 0 {
		scale = timekeeper.Scale(1e9, hz)
	}
	const part = 100
	if scale > measured+measured/part || scale < measured-measured/part {
		return 0
	}
	return scale
}
