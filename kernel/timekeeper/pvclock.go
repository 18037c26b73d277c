package timekeeper

import "encoding/binary"

// The clock that a hypervisor gives a guest (KVM, Documentation/virt/kvm/x86/msr.rst,
// MSR_KVM_SYSTEM_TIME_NEW and MSR_KVM_WALL_CLOCK_NEW; Xen has the same, struct
// vcpu_time_info): how its counter becomes nanoseconds.

// PVSize is the size of what the hypervisor writes.
const PVSize = 32

// PVClock is that.
type PVClock struct {
	Version uint32 // odd while the hypervisor changes the rest
	Counter uint64 // a reading
	Nanos   uint64 // what it stands for
	Mul     uint32 // nanoseconds for each tick, with 32 bits of fraction, behind a shift
	Shift   int8   // to the left
	Stable  bool   // the counters of all CPUs agree
}

// ParsePVClock reads it from PVSize bytes.
func ParsePVClock(b []byte) PVClock {
	le := binary.LittleEndian
	const stable = 1 << 0
	return PVClock{
		Version: le.Uint32(b), Counter: le.Uint64(b[8:]), Nanos: le.Uint64(b[16:]),
		Mul: le.Uint32(b[24:]), Shift: int8(b[28]), Stable: b[29]&stable != 0,
	}
}

// Valid reports whether it was read whole and can be used.
func (p PVClock) Valid() bool {
	return p.Version != 0 && p.Version&1 == 0 && p.Mul != 0 && p.Shift > -32 && p.Shift < 32
}

// At is the nanoseconds that a reading of the counter stands for.
func (p PVClock) At(counter uint64) uint64 {
	if counter < p.Counter {
		return p.Nanos
	}
	ticks := counter - p.Counter
	if p.Shift < 0 {
		ticks >>= uint(-p.Shift)
	} else {
		ticks <<= uint(p.Shift)
	}
	return p.Nanos + mulScale(ticks, uint64(p.Mul))
}

// Scale is nanoseconds for each tick, with 32 bits of fraction.
func (p PVClock) Scale() uint64 {
	if p.Shift < 0 {
		return uint64(p.Mul) >> uint(-p.Shift)
	}
	return uint64(p.Mul) << uint(p.Shift)
}

// PVWallSize is the size of what the hypervisor writes of the time of the day.
const PVWallSize = 12

// ParsePVWall is the nanoseconds since 1970 when the hypervisor's clock was at 0;
// false if it was not read whole.
func ParsePVWall(b []byte) (int64, bool) {
	le := binary.LittleEndian
	version, seconds, nanos := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	return int64(seconds)*second + int64(nanos), version != 0 && version&1 == 0 && seconds != 0 && nanos < second
}
