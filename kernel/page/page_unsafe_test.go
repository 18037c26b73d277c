package page

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

// newAllocator returns an allocator for simulated memory up to end. It has no free memory yet; its table of pages is
// in the memory behind end.
func newAllocator(t testing.TB, end uint64) *Allocator {
	words := make([]uint64, (end+TableSize(end)+BlockSize)/8)
	t.Cleanup(func() { runtime.KeepAlive(words) })
	base := (uintptr(unsafe.Pointer(&words[0])) + Size - 1) &^ (Size - 1)
	a := &Allocator{}
	a.Init(base, end, end)
	return a
}

// Every allocated page or block is zeroed and belongs to nothing else, and can be freed. A block can also be freed page
// by page.
func TestAllocFree(t *testing.T) {
	const end = 6*BlockSize + 9*Size
	a := newAllocator(t, end)
	a.Add(0, 2*BlockSize+7)
	a.Add(2*BlockSize+100*Size, 2*BlockSize+200*Size) // two separate ranges of the same block
	a.Add(2*BlockSize+300*Size, end)
	const total = 2*blockPages - 1 + 100 + 3*blockPages + 212 + 9
	owned := map[uint64]bool{} // addresses of the allocated pages
	rng := rand.New(rand.NewPCG(1, 2))
	take := func(pa, size uint64) {
		for at := pa; at < pa+size; at += Size {
			if owned[at] || at == 0 || at%Size != 0 || at >= end {
				t.Fatalf("page %#x", at)
			}
			owned[at] = true
			p := a.page(at)
			for i := range p {
				if p[i] != 0 {
					t.Fatalf("page %#x is not zero", at)
				}
				p[i] = ^uint64(0)
			}
		}
	}
	for range 3000 {
		if free, all := a.Pages(); all != total || free != total-uint64(len(owned)) {
			t.Fatalf("%d of %d pages are free, %d in use", free, all, len(owned))
		}
		switch n := rng.IntN(100); {
		case n < 2:
			if pa, ok := a.AllocBlock(); ok {
				take(pa, BlockSize)
			}
		case n < 3:
			for pa := range owned { // if all pages of a block are in use, frees the block with one call
				first := pa &^ (BlockSize - 1)
				whole := true
				for at := first; at < first+BlockSize; at += Size {
					whole = whole && owned[at]
				}
				if whole && first != 0 {
					a.FreeBlock(first)
					for at := first; at < first+BlockSize; at += Size {
						delete(owned, at)
					}
				}
				break
			}
		case n < 50:
			for pa := range owned {
				a.Free(pa)
				delete(owned, pa)
				break
			}
		default:
			pa, ok := a.Alloc()
			if ok != (len(owned) < total) {
				t.Fatalf("ok is %v with %d pages in use", ok, len(owned))
			}
			if ok {
				take(pa, Size)
			}
		}
	}
	for pa := range owned {
		a.Free(pa)
	}
	for i := range 4 { // the first block lacks its first page, the third some pages, the last most pages
		if _, ok := a.AllocBlock(); !ok {
			t.Errorf("there are %d blocks", i)
		}
	}
	if _, ok := a.AllocBlock(); ok {
		t.Error("there is a block too many")
	}
}

// Single pages are allocated from the same block until it is used up, so that other blocks stay whole.
func TestBlocksStayWhole(t *testing.T) {
	a := newAllocator(t, 4*BlockSize)
	a.Add(0, 4*BlockSize)
	for range 2*blockPages - 1 {
		a.Alloc()
	}
	for range 2 {
		if _, ok := a.AllocBlock(); !ok {
			t.Error("no whole block is left")
		}
	}
}

func TestContiguous(t *testing.T) {
	a := newAllocator(t, 5*BlockSize)
	a.Add(0, 5*BlockSize)
	for _, c := range []struct{ pages, want uint64 }{
		{9, Size}, {10, 10 * Size}, {2*blockPages + 1, BlockSize}, {blockPages - 1, 3*BlockSize + Size},
	} {
		if pa, ok := a.Contiguous(c.pages); !ok || pa != c.want {
			t.Errorf("%d pages: %#x, %v", c.pages, pa, ok)
		}
	}
	for _, pages := range []uint64{0, blockPages + 1, 1 << 40} {
		if pa, ok := a.Contiguous(pages); ok {
			t.Errorf("%d pages: %#x", pages, pa)
		}
	}
}
