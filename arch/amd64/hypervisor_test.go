package amd64

import "testing"

// The frequency is computed correctly for typical processors. It is 0 if a parameter is unknown.
func TestCrystalFrequency(t *testing.T) {
	for _, c := range []struct {
		den, num, crystal uint32
		want              uint64
	}{{2, 242, 24_000_000, 2_904_000_000}, {1, 4_000_000_000, 4_000_000_000, 16_000_000_000_000_000_000}, {0, 242, 24_000_000, 0}, {2, 242, 0, 0}, {2, 0, 24_000_000, 0}} {
		if got := crystalFrequency(c.den, c.num, c.crystal); got != c.want {
			t.Errorf("%d/%d of %d Hz: %d, want %d", c.num, c.den, c.crystal, got, c.want)
		}
	}
}
