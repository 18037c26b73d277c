package kernel

import (
	"encoding/binary"
	"testing"

	"loam/boot"
)

// Reference clocks: which one is used, and the hypervisor's clock.

// offerKVM makes the model offer KVM's clock. The hypervisor writes the page of the clock when the core enables it.
func (m *machine) offerKVM(features uint32, stable bool) {
	const present = 1 << 31
	m.cpuid = map[uint32][4]uint32{
		1: {2: present}, 0x4000_0000: {0x4000_0001, 0x4b4d564b, 0x564b4d56, 0x4d}, 0x4000_0001: {features},
	}
	m.enabled = func(msr uint32, v uint64) {
		page := bytesAt(uint64(m.core.window)+v&^1, 32)
		le := binary.LittleEndian
		switch msr {
		case kvmSystemTime:
			le.PutUint32(page, 2) // version
			le.PutUint64(page[8:], m.counter())
			le.PutUint64(page[16:], m.ticks)
			le.PutUint32(page[24:], 1<<31) // nanoseconds for each tick, with 32 fraction bits and the shift
			page[28] = 1
			if stable {
				page[29] = 1
			}
		case kvmWallClock:
			le.PutUint32(page, 2)
			le.PutUint32(page[4:], 1_700_000_000)
			le.PutUint32(page[8:], 5)
		}
	}
}

// KVM's clock is used if it exists and is the same on all CPUs, and otherwise the interval timer.
func TestHypervisorClock(t *testing.T) {
	const both = kvmClockSource | kvmClockStable
	for _, c := range []struct {
		what     string
		features uint32
		stable   bool
		want     referenceKind
	}{
		{"stable", both, true, hypervisor},
		{"not stable", both, false, intervalTimer},
		{"not the same on all CPUs", kvmClockSource, true, intervalTimer},
		{"no clock", kvmClockStable, true, intervalTimer},
	} {
		m := startClock(t)
		m.offerKVM(c.features, c.stable)
		m.core.calibrate()
		k := m.core
		if k.reference.kind != c.want {
			t.Errorf("%s: the reference clock is of kind %d, want %d", c.what, k.reference.kind, c.want)
		}
		if c.want != hypervisor {
			continue
		}
		if got := int64(k.hypervisorTime()); !near(got, int64(m.ticks)) {
			t.Errorf("%s: the hypervisor's time is %d, want %d", c.what, got, m.ticks)
		}
		if wall := k.clock.now() + k.clock.Wall; !near(wall, 1_700_000_000e9+5+int64(m.ticks)) {
			t.Errorf("%s: wall clock %d", c.what, wall)
		}
	}
}

// A page that the hypervisor is writing for ever has no valid time, and is not read for ever.
func TestHypervisorClockBusy(t *testing.T) {
	m := startClock(t)
	m.offerKVM(kvmClockSource|kvmClockStable, true)
	if !m.core.openHypervisorClock() {
		t.Fatal("no clock")
	}
	*word32(uint64(m.core.reference.page)) = 3 // an odd version
	if p := m.core.readHypervisorClock(); p.Valid() {
		t.Errorf("%+v", p)
	}
}

// An HPET is used only outside of memory, inside of the window, and if it counts. The model's registers do not count.
func TestOpenHPET(t *testing.T) {
	m := startClock(t)
	k := m.core
	const end = 32 << 20
	k.machine.Usable[0].End = end
	const period = 10_000_000 // femtoseconds
	*word32(uint64(k.window) + end + 4) = period
	for _, pa := range []uint64{0, 0x1000, end - 0x800, boot.WindowAtBoot, 1 << 40} {
		if k.openHPET(pa) || k.reference.hpet != 0 {
			t.Errorf("an HPET at %#x", pa)
		}
	}
	if k.openHPET(end) {
		t.Error("an HPET that does not count is used")
	}
}

// The page of clocks for ring 3 has the state of the core's clock, and changes with it.
func TestSharedClock(t *testing.T) {
	m := newMachine(t, 1, 1)
	k := m.core
	pa, _ := k.pages.Alloc()
	k.sharedClock = k.window + uintptr(pa)
	content := func() string { return string(bytesAt(uint64(k.sharedClock), pageSize)) }
	empty := content()
	k.clock.SetWall(5e18)
	k.publishClock()
	first := content()
	k.clock.SetWall(6e18)
	k.publishClock()
	if second := content(); first == empty || second == first {
		t.Error("the page does not have the new time")
	}
	k.sharedClock = 0
	k.publishClock() // there is no page
}
