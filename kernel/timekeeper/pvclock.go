package timekeeper

import "encoding/binary"

// The paravirtual clock that a hypervisor provides to a guest (KVM, Documentation/virt/kvm/x86/msr.rst,
// MSR_KVM_SYSTEM_TIME_NEW and MSR_KVM_WALL_CLOCK_NEW; Xen's struct vcpu_time_info has the same layout). It says how
// to convert the time stamp counter into nanoseconds.

// PVSize is the size of the structure that the hypervisor writes, in bytes.
const PVSize = 32

// PVClock is the decoded structure in which the hypervisor describes the clock.
type PVClock struct {
	Version uint32 // odd while the hypervisor changes the other fields
	Counter uint64 // reading of the counter
	Nanos   uint64 // time in nanoseconds when the time stamp counter had the value of the field Counter
	Mul     uint32 // nanoseconds for each tick after the shift, with 32 fraction bits
	Shift   int8   // left shift of the ticks; negative: to the right
	Stable  bool   // the counters of all CPUs agree
}

// ParsePVClock decodes the structure from at least PVSize bytes.
func ParsePVClock(b []byte) PVClock {
	le := binary.LittleEndian
	const stable = 1 << 0
	return PVClock{
		Version: le.Uint32(b), Counter: le.Uint64(b[8:]), Nanos: le.Uint64(b[16:]),
		Mul: le.Uint32(b[24:]), Shift: int8(b[28]), Stable: b[29]&stable != 0,
	}
}

// Valid reports whether the structure was read consistently and is usable.
func (p PVClock) Valid() bool {
	return p.Version != 0 && p.Version&1 == 0 && p.Mul != 0 && p.Shift > -32 && p.Shift < 32
}

// At returns the time of a counter reading, in nanoseconds.
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

// Scale returns nanoseconds for each tick, with 32 fraction bits.
func (p PVClock) Scale() uint64 {
	if p.Shift < 0 {
		return uint64(p.Mul) >> uint(-p.Shift)
	}
	return uint64(p.Mul) << uint(p.Shift)
}

// PVWallSize is the size of the hypervisor's wall clock structure, in bytes.
const PVWallSize = 12

// ParsePVWall returns the wall clock time at which the hypervisor's clock was 0, in nanoseconds since 1970. It
// returns false if the structure was not read consistently.
func ParsePVWall(b []byte) (int64, bool) {
	le := binary.LittleEndian
	version, seconds, nanos := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	return int64(seconds)*second + int64(nanos), version != 0 && version&1 == 0 && seconds != 0 && nanos < second
}
