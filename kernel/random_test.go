package kernel

import "testing"

// After stir the generator's output changes, whatever bits are mixed in, even if they are zero.
func TestStir(t *testing.T) {
	seen := map[uint64]bool{}
	for i := range uint64(1000) {
		random.Seed([32]byte{1})
		stir([4]uint64{3: i})
		seen[random.Uint64()] = true
		stir([4]uint64{})
		seen[random.Uint64()] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d numbers, not 2000", len(seen))
	}
}
