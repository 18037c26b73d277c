package user

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"loam/arch/amd64"
	"loam/kernel/space"
)

// rootOf returns a root table.
func rootOf(p *Pages, pa uint64) *[512]uint64 {
	return (*[512]uint64)(unsafe.Pointer(unsafe.SliceData(p.Bytes(pa))))
}

// After each change, both root tables of a space have the same entries for the lower half, but only the second one allows
// execution. A change leaves the upper half as it is. At the end, all tables are free.
func TestSecondRoot(t *testing.T) {
	p := memory(200)
	free := len(p.free)
	root, _ := p.takeTable()
	second, _ := p.takeTable()
	pa, _ := p.takeTable()
	const upper = 0x1234_5003
	rootOf(p, second)[300] = upper
	s := newSpace(p, root, second, pa)
	rng := rand.New(rand.NewPCG(5, 6))
	seen := 0
	for range 2000 {
		start := rng.Uint64N(6)<<39 + rng.Uint64N(3)*amd64.BigPageSize
		c := Change{Action: Action(rng.IntN(3)), Start: start, End: start + pageSize, Physical: 0x10_0000, Rights: space.Read}
		switch {
		case c.Action == Unmap:
			c.End = start + rng.Uint64N(3)<<39
		case rng.IntN(2) == 0:
			c.End, c.Physical = start+amd64.BigPageSize, amd64.BigPageSize
		}
		if err := s.Apply([]Change{c}); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		for i, e := range rootOf(p, root)[:256] {
			if other := rootOf(p, second)[i]; other != e&^amd64.PageNoExecute || (e == 0) != (other == 0) || e != 0 && e&amd64.PageNoExecute == 0 {
				t.Fatalf("%+v: entry %d is %#x and %#x", c, i, e, other)
			} else if e != 0 {
				seen++
			}
		}
		if rootOf(p, second)[300] != upper || rootOf(p, root)[300] != 0 {
			t.Fatalf("%+v: the upper half has changed", c)
		}
	}
	if seen == 0 {
		t.Error("nothing was mapped")
	}
	s.Close()
	if len(p.free) != free || p.Used() != (Use{}) {
		t.Errorf("%d pages are free, want %d; in use %+v", len(p.free), free, p.Used())
	}
}
