package space

import (
	"math/rand/v2"
	"testing"
)

const (
	low   = 0xffff_c000_0000_0000
	pages = 64
	high  = low + pages*PageSize
)

func newSpace() *Space {
	s := new(Space)
	s.Init(low, high)
	return s
}

// reference is a space as an array of pages: each is 0 if free, otherwise the rights of the page plus 1<<7.
type reference [pages]uint8

func (r *reference) set(start, end uint64, v uint8) {
	for p := start; p < end; p += PageSize {
		r[(p-low)/PageSize] = v
	}
}

// check compares s with want, page by page, and checks that adjacent regions are merged.
func (s *Space) check(t *testing.T, want *reference) {
	t.Helper()
	for i, w := range want {
		r, ok := s.Find(low + uint64(i)*PageSize + 17)
		if ok != (w != 0) || ok && uint8(r.Rights)|1<<7 != w {
			t.Fatalf("page %d: %x, %v; want %x", i, r, ok, w)
		}
	}
	for i := 1; i < s.count; i++ {
		a, b := s.regions[i-1], s.regions[i]
		if a.Start >= a.End || a.End > b.Start || a.End == b.Start && a.Rights == b.Rights {
			t.Fatalf("regions %x and %x", a, b)
		}
	}
}

func run(t *testing.T, ops []byte) {
	s := newSpace()
	var want reference
	for ; len(ops) >= 3; ops = ops[3:] {
		start := low + uint64(ops[1]%pages)*PageSize
		size := (uint64(ops[2]%pages) + 1) * PageSize
		rights := Rights(ops[0] >> 2 & 7)
		switch ops[0] & 3 {
		case 0:
			if ok := s.Set(start, start+size, rights); ok != (start+size <= high) {
				t.Fatalf("Set is %v", ok)
			} else if ok {
				want.set(start, start+size, uint8(rights)|1<<7)
			}
		case 1:
			if s.Clear(start, start+size) {
				want.set(start, start+size, 0)
			}
		default:
			at, ok := s.Reserve(start, size, PageSize<<(ops[0]>>5&3), rights)
			if !ok {
				break
			}
			for p := at; p < at+size; p += PageSize {
				if want[(p-low)/PageSize] != 0 {
					t.Fatalf("%#x was not free", p)
				}
			}
			want.set(at, at+size, uint8(rights)|1<<7)
		}
		s.check(t, &want)
	}
}

func FuzzSpace(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 2, 0, 2, 0, 5})
	f.Fuzz(run)
}

func TestAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		ops := make([]byte, 300)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		run(t, ops)
	}
}

// Reserve uses the caller's hint if it is free, and otherwise chooses an aligned address. It finds the last gap of
// the address space.
func TestReserve(t *testing.T) {
	s := newSpace()
	if at, ok := s.Reserve(low+5*PageSize, PageSize, PageSize, 0); !ok || at != low+5*PageSize {
		t.Errorf("%#x, %v", at, ok)
	}
	if at, ok := s.Reserve(0xc000000000, 8*PageSize, 8*PageSize, 0); !ok || at != low+8*PageSize {
		t.Errorf("%#x, %v", at, ok)
	}
	if at, ok := s.Reserve(0, 48*PageSize, PageSize, Read); !ok || at != low+16*PageSize {
		t.Errorf("%#x, %v", at, ok)
	}
	if at, ok := s.Reserve(0, 5*PageSize, PageSize, Read); !ok || at != low {
		t.Errorf("%#x, %v", at, ok)
	}
	if at, ok := s.Reserve(0, 3*PageSize, PageSize, Read); ok {
		t.Errorf("%#x, though there is no room", at)
	}
	if !s.Covered(low, low+5*PageSize, Read) || s.Covered(low, low+6*PageSize, Read) || s.Covered(low, low+PageSize, Read|Write) {
		t.Error("Covered is wrong")
	}
}

func TestTooManyRegions(t *testing.T) {
	s := new(Space)
	s.Init(low, low+1<<40)
	for i := range uint64(MaxRegions) {
		if !s.Set(low+2*i*PageSize, low+(2*i+1)*PageSize, Read) {
			t.Fatalf("region %d is refused", i)
		}
	}
	if s.Set(low+1<<39, low+1<<39+PageSize, Read) {
		t.Error("one more is taken")
	}
	if !s.Set(low, low+2*PageSize, Read) || s.count != MaxRegions-1 {
		t.Errorf("joining two: %d regions", s.count)
	}
}

func TestAllocatesNothing(t *testing.T) {
	s := newSpace()
	if n := testing.AllocsPerRun(100, func() { s.Reserve(0, PageSize, PageSize, Read); s.Clear(low, high) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
