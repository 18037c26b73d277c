package timekeeper

import "testing"

// SeenWhole accepts an interval during which the CPU was descheduled if the reference cannot have wrapped around in
// that time, or if the reference was read at least once in each half of the interval.
func TestSeenWhole(t *testing.T) {
	const ms = 3_000_000 // ticks of a counter of 3 GHz
	pit := Reference{Bits: 16, Num: 1e9, Den: 1_193_182}
	power := Reference{Bits: 24, Num: 1e9, Den: 3_579_545}
	hpet := Reference{Bits: 32, Num: 10, Den: 1}
	page := Reference{Bits: 64, Num: 1, Den: 1}
	for _, c := range []struct {
		what         string
		r            Reference
		ticks, pause uint64
		want         bool
	}{
		{"HPET, never away", hpet, 10 * ms, 0, true},
		{"HPET, away for most of the time", hpet, 10 * ms, 8 * ms, true},
		{"HPET, away for a second", hpet, 1010 * ms, 1000 * ms, true},
		{"HPET, away for a round of it", hpet, 43_000 * ms, 42_990 * ms, false},
		{"ACPI's timer, away for most of the time", power, 100 * ms, 90 * ms, true},
		{"ACPI's timer, away for a round of it", power, 4690 * ms, 4680 * ms, false},
		{"interval timer, away for less than half of the time", pit, 20 * ms, 9 * ms, true},
		{"interval timer, away for a round of it", pit, 65 * ms, 55 * ms, false},
		{"hypervisor's clock, away for an hour", page, 3600_000 * ms, 3599_990 * ms, true},
	} {
		if got := c.r.SeenWhole(c.ticks, c.pause); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
