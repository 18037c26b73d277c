package frame

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// newAllocator has pages 1 to n-1 of a made-up memory, in two pieces.
func newAllocator(t *testing.T, n uint64) (*Allocator, []uint64) {
	words := make([]uint64, (n+1)*Size/8)
	base := (uintptr(unsafe.Pointer(&words[0])) + Size - 1) &^ (Size - 1)
	a := &Allocator{Window: base}
	if !a.Add(0, n/2*Size+7) || !a.Add(n/2*Size, n*Size) {
		t.Fatal("not added")
	}
	return a, words
}

// Each page is given out once, zeroed, and comes back.
func TestAllocFree(t *testing.T) {
	const n = 50
	a, _ := newAllocator(t, n)
	owned := map[uint64]bool{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		if free, total := a.Pages(); total != n-1 || free != n-1-uint64(len(owned)) {
			t.Fatalf("%d of %d pages are free, %d in use", free, total, len(owned))
		}
		if rng.IntN(2) == 0 {
			for pa := range owned {
				a.Free(pa)
				delete(owned, pa)
				break
			}
			continue
		}
		pa, ok := a.Alloc()
		if ok != (len(owned) < n-1) {
			t.Fatalf("ok is %v with %d pages in use", ok, len(owned))
		}
		if !ok {
			continue
		}
		if owned[pa] || pa == 0 || pa%Size != 0 || pa >= n*Size {
			t.Fatalf("page %#x", pa)
		}
		owned[pa] = true
		p := a.page(pa)
		for i := range p {
			if p[i] != 0 {
				t.Fatalf("page %#x is not zero", pa)
			}
			p[i] = ^uint64(0)
		}
	}
}

func TestContiguous(t *testing.T) {
	a, _ := newAllocator(t, 20)
	pa, ok := a.Contiguous(9)
	if !ok || pa != Size {
		t.Errorf("%#x, %v", pa, ok)
	}
	if pa, ok = a.Contiguous(10); !ok || pa != 10*Size {
		t.Errorf("%#x, %v", pa, ok)
	}
	if _, ok = a.Contiguous(1); ok {
		t.Error("more than there are")
	}
}

func TestTooManyRanges(t *testing.T) {
	var a Allocator
	for i := range uint64(maxRanges) {
		if !a.Add((2*i+1)*Size, (2*i+2)*Size) {
			t.Fatalf("range %d is refused", i)
		}
	}
	if a.Add(1<<30, 1<<31) {
		t.Error("one more is taken")
	}
	if free, _ := a.Pages(); free != maxRanges {
		t.Errorf("%d pages", free)
	}
}
