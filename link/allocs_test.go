package link_test

import (
	"net/netip"
	"runtime/debug"
	"testing"

	"loam/internal/race"
)

func addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, last}) }

// allocs fails the test if f allocates after the pools are filled.
func allocs(t *testing.T, f func()) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f()
	if n := testing.AllocsPerRun(50, f); n > 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
