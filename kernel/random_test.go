package kernel

import "testing"

// After stir the generator's output changes, whatever bits are mixed in, even if they are zero.
func TestStir(t *testing.T) {
	k := &core{}
	seen := map[uint64]bool{}
	for i := range uint64(1000) {
		k.random.Seed([32]byte{1})
		k.stir([4]uint64{3: i})
		seen[k.random.Uint64()] = true
		k.stir([4]uint64{})
		seen[k.random.Uint64()] = true
	}
	if len(seen) != 2000 {
		t.Errorf("%d numbers, not 2000", len(seen))
	}
}
