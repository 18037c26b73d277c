package timekeeper

import (
	"encoding/binary"
	"testing"
)

// pvBytes encodes p as a hypervisor does.
func pvBytes(p PVClock) []byte {
	b := make([]byte, PVSize)
	le := binary.LittleEndian
	le.PutUint32(b, p.Version)
	le.PutUint64(b[8:], p.Counter)
	le.PutUint64(b[16:], p.Nanos)
	le.PutUint32(b[24:], p.Mul)
	b[28] = byte(p.Shift)
	if p.Stable {
		b[29] = 1
	}
	return b
}

// Counters of 1 GHz, 2.5 GHz and 400 MHz are converted to nanoseconds with the parameters of KVM.
func TestPVClock(t *testing.T) {
	for _, c := range []struct {
		clock PVClock
		ticks uint64
		nanos uint64
	}{
		{PVClock{2, 1000, 50, 1 << 31, 1, true}, 1_000_000_000, 1_000_000_000},
		{PVClock{4, 99, 7, 3435973836, -1, true}, 2_500_000_000, 1_000_000_000},
		{PVClock{6, 1 << 60, 0, 2684354560, 2, false}, 400_000_000, 1_000_000_000},
	} {
		p := ParsePVClock(pvBytes(c.clock))
		if p != c.clock || !p.Valid() {
			t.Errorf("%+v became %+v", c.clock, p)
		}
		if got := p.At(p.Counter+c.ticks) - p.Nanos; got > c.nanos || c.nanos-got > 2 {
			t.Errorf("%+v: %d ticks are %d ns, want %d", p, c.ticks, got, c.nanos)
		}
		if got := mulScale(c.ticks, p.Scale()); got > c.nanos || c.nanos-got > 2 {
			t.Errorf("%+v: by its scale %d ticks are %d ns, want %d", p, c.ticks, got, c.nanos)
		}
		if got := p.At(p.Counter - 1); got != p.Nanos {
			t.Errorf("%+v: a counter that is behind gives %d", p, got)
		}
	}
	for _, p := range []PVClock{{}, {Version: 1, Mul: 1}, {Version: 2}, {Version: 2, Mul: 1, Shift: 32}, {Version: 2, Mul: 1, Shift: -128}} {
		if p.Valid() {
			t.Errorf("%+v is taken", p)
		}
	}
}

// ParsePVWall decodes the wall clock time of a hypervisor, and rejects invalid ones.
func TestPVWall(t *testing.T) {
	for _, c := range []struct {
		version, seconds, nanos uint32
		want                    int64
		ok                      bool
	}{
		{2, 1_800_000_000, 5, 1_800_000_000_000_000_005, true},
		{1, 1, 0, 1_000_000_000, false}, {0, 1, 0, 1_000_000_000, false}, {2, 0, 0, 0, false}, {2, 1, 1_000_000_000, 2_000_000_000, false},
	} {
		b := binary.LittleEndian.AppendUint32(nil, c.version)
		b = binary.LittleEndian.AppendUint32(b, c.seconds)
		b = binary.LittleEndian.AppendUint32(b, c.nanos)
		if got, ok := ParsePVWall(b); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %v", c, got, ok)
		}
	}
}
