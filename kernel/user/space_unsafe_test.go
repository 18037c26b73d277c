package user

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"loam/arch/amd64"
	"loam/kernel/space"
)

// memory returns simulated physical memory that starts at address 0. The page at 0 is in use.
func memory(count int) *Pages {
	words := make([]uint64, (count+2)*amd64.PageSize/8)
	p := &Pages{window: (uintptr(unsafe.Pointer(&words[0])) + amd64.PageSize - 1) &^ (amd64.PageSize - 1)}
	for i := range count {
		p.free = append(p.free, uint64(i+1)*amd64.PageSize)
	}
	return p
}

func testSpace(p *Pages) *Space {
	root, _ := p.takeTable()
	pa, _ := p.takeTable()
	return newSpace(p, root, 0, pa)
}

const pageSize = amd64.PageSize

// entryOf returns the address and rights of the page mapped at va; zeros if there is none.
func entryOf(s *Space, va uint64) (pa uint64, rights space.Rights) {
	e, size := s.tables.Lookup(va)
	if e == 0 {
		return 0, 0
	}
	rights = space.Read
	if e&amd64.PageWrite != 0 {
		rights |= space.Write
	}
	if e&amd64.PageNoExecute == 0 {
		rights |= space.Execute
	}
	return amd64.Physical(e) + va&(size-1)&^(pageSize-1), rights
}

// Random changes have the same effect as on a map of pages, and tables are freed with their last page.
func TestApplyAgainstModel(t *testing.T) {
	type mapping struct {
		pa     uint64
		rights space.Rights
	}
	const span = 6 << 20 // three pages of 2 MiB, which use two page tables
	const base = 1<<30 - 2<<21
	p := memory(200)
	s := testSpace(p)
	before := len(p.free)
	model := map[uint64]mapping{}
	rng := rand.New(rand.NewPCG(3, 4))
	rights := func() space.Rights { return space.Read | space.Rights(rng.IntN(4))<<1 }
	for range 4000 {
		start := base + rng.Uint64N(span/pageSize)*pageSize
		end := min(start+rng.Uint64N(700)*pageSize, base+span)
		c := Change{Action: Action(rng.IntN(3)), Start: start, End: end, Rights: rights()}
		big := rng.IntN(4) == 0
		drop := func(va uint64) {
			if e, size := s.tables.Lookup(va); e != 0 && size > pageSize {
				for at := va &^ (size - 1); at < va&^(size-1)+size; at += pageSize {
					delete(model, at)
				}
			}
			delete(model, va)
		}
		switch c.Action {
		case Install:
			c.Physical, c.End = rng.Uint64N(1<<20)*pageSize, start+pageSize
			if big {
				c.Start &^= amd64.BigPageSize - 1
				c.End, c.Physical = c.Start+amd64.BigPageSize, c.Physical&^(amd64.BigPageSize-1)
			}
			for va := c.Start; va < c.End; va += pageSize {
				drop(va)
			}
			for va := c.Start; va < c.End; va += pageSize {
				model[va] = mapping{c.Physical + va - c.Start, c.Rights}
			}
		case Unmap:
			for va := start; va < end; va += pageSize {
				drop(va)
			}
		case Restrict:
			for _, va := range []uint64{start, end} {
				if _, size := s.tables.Lookup(va); size > pageSize && va%size != 0 {
					drop(va)
				}
			}
			for va := start; va < end; va += pageSize {
				if m, ok := model[va]; ok {
					model[va] = mapping{m.pa, m.rights & c.Rights}
				}
			}
		}
		if err := s.Apply([]Change{c}); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
	for va := uint64(base); va < base+span; va += pageSize {
		pa, r := entryOf(s, va)
		if m := model[va]; m.pa != pa || m.rights != r {
			t.Fatalf("%#x: %#x %v, want %+v", va, pa, r, m)
		}
	}
	if err := s.Apply([]Change{{Action: Unmap, End: Limit}}); err != nil || len(p.free) != before {
		t.Errorf("%d pages of tables are left, %v", before-len(p.free), err)
	}
}

// A change of a part of a big page drops and flushes the whole one. A change that changes nothing flushes nothing.
func TestPartOfBigPage(t *testing.T) {
	const at, size = 1 << 30, uint64(amd64.BigPageSize)
	all := space.Read | space.Write
	whole := Change{Action: Install, Rights: all, Start: at, End: at + size, Physical: size}
	part := func(a Action, first, pages uint64, r space.Rights) Change {
		c := Change{Action: a, Rights: r, Start: at + first*pageSize, End: at + (first+pages)*pageSize}
		if a == Install || a == Offer {
			c.Physical = 5 * pageSize
		}
		return c
	}
	const kept, dropped = 1, 2
	for _, test := range []struct {
		name   string
		change Change
		want   int // what happens to the big page; 0: it is replaced or restricted as a whole
		flush  bool
	}{
		{"the same again", whole, kept, false},
		{"an offer", part(Offer, 3, 1, all), kept, false},
		{"the same rights", part(Restrict, 0, 512, all), kept, false},
		{"fewer rights", part(Restrict, 0, 512, space.Read), 0, true},
		{"other pages", Change{Action: Install, Rights: all, Start: at, End: at + size, Physical: 3 * size}, 0, true},
		{"fewer rights of the start", part(Restrict, 0, 9, space.Read), dropped, true},
		{"fewer rights of the end", part(Restrict, 9, 503, space.Read), dropped, true},
		{"a page is unmapped", part(Unmap, 7, 1, 0), dropped, true},
		{"the first page is unmapped", part(Unmap, 0, 1, 0), dropped, true},
		{"the last page is unmapped", part(Unmap, 511, 2, 0), dropped, true},
		{"all is unmapped", part(Unmap, 0, 512, 0), dropped, true},
		{"a page is installed", part(Install, 7, 1, all), dropped, true},
		{"memory next to it is unmapped", part(Unmap, 512, 512, 0), kept, false},
	} {
		s := testSpace(memory(50))
		if err := s.Apply([]Change{whole}); err != nil {
			t.Fatal(err)
		}
		*s.active, flushes = 1, nil
		if err := s.Apply([]Change{test.change}); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		pa, rights := entryOf(s, at+8*pageSize)
		if got := pa == size+8*pageSize && rights == all; got != (test.want == kept) || (pa == 0) != (test.want == dropped) {
			t.Errorf("%s: page %#x with %v", test.name, pa, rights)
		}
		if (len(flushes) != 0) != test.flush || len(flushes) > 0 && flushes[0][1] != 0 {
			t.Errorf("%s: flushes %#x", test.name, flushes)
		}
	}
}

// Before a page of another size is mapped, the old translations are flushed, so that no CPU has both sizes at once. This also
// holds if an earlier change of the same call has removed them.
func TestFlushBeforeOtherSize(t *testing.T) {
	const at, size = 1 << 30, uint64(amd64.BigPageSize)
	install := func(length, pa uint64) Change {
		return Change{Action: Install, Rights: space.Read, Start: at, End: at + length, Physical: pa}
	}
	big, small := install(size, size), install(pageSize, 5*pageSize)
	unmap := Change{Action: Unmap, Start: at, End: at + size}
	for _, test := range []struct {
		name    string
		mapped  Change
		changes []Change
		want    int // number of flushes
	}{
		{"a small page replaces a big one", big, []Change{small}, 1},
		{"a big page replaces small ones", small, []Change{big}, 1},
		{"small after unmap", big, []Change{unmap, small}, 1},
		{"big after unmap", small, []Change{unmap, big}, 1},
		{"there and back", big, []Change{small, big}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := memory(50)
			s := testSpace(p)
			must := func(changes ...Change) {
				if err := s.Apply(changes); err != nil {
					t.Fatal(err)
				}
			}
			must(install(pageSize, 9*pageSize), test.mapped)
			*s.active, flushes = 1, nil
			whenFlushed = func() {
				if pa, _ := entryOf(s, at); pa != 0 {
					t.Errorf("flush %d: the page at %#x is mapped already", len(flushes), pa)
				}
			}
			t.Cleanup(func() { whenFlushed = nil })
			must(test.changes...)
			whenFlushed = nil
			if len(flushes) != test.want {
				t.Errorf("flushes %#x", flushes)
			}
			must(Change{Action: Unmap, End: Limit})
			if s.Size() != 0 || len(p.free) != 48 {
				t.Errorf("%d tables are left, %d pages are free", s.Size(), len(p.free))
			}
		})
	}
}

// Invalid changes are rejected, and the changes after them are not made.
func TestApplyRefuses(t *testing.T) {
	s := testSpace(memory(50))
	for _, c := range []Change{
		{Action: Unmap, Start: 2 * pageSize, End: pageSize},
		{Action: Unmap, End: 1 << 63},
		{Action: Unmap, Start: 1, End: pageSize},
		{Action: Install, Start: Limit, End: Limit + pageSize},
		{Action: Install, Start: pageSize, End: 3 * pageSize},
		{Action: Install, Start: pageSize, End: 2 * pageSize, Physical: 5},
		{Action: Install, Start: pageSize, End: pageSize + amd64.BigPageSize},
		{Action: Install, End: amd64.BigPageSize, Physical: pageSize},
		{Action: Install, Start: 0xffff_8000_0000_0000, End: 0xffff_8000_0000_1000},
	} {
		later := Change{Action: Install, Start: pageSize, End: 2 * pageSize, Physical: pageSize}
		if err := s.Apply([]Change{c, later}); err != ErrAddress {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if pa, _ := entryOf(s, pageSize); pa != 0 {
		t.Error("changes behind a refused one were made")
	}
	none := testSpace(memory(3))
	if err := none.Apply([]Change{{Action: Install, End: pageSize, Physical: pageSize}}); err != ErrMemory {
		t.Errorf("without memory: %v", err)
	}
}

// If no other page is free, page tables take pages from the kernel's reserve, and free them as others.
func TestTablesFromReserve(t *testing.T) {
	p := memory(6)
	s := testSpace(p)
	reserve = append([]uint64(nil), p.free[1:]...)
	p.free = p.free[:1]
	t.Cleanup(func() { reserve = nil })
	c := Change{Action: Install, End: pageSize, Physical: pageSize}
	if err := s.Apply([]Change{c}); err != ErrMemory || len(reserve) != 3 {
		t.Errorf("a change without a right to the reserve: %v, %d pages of the reserve are left", err, len(reserve))
	}
	c.Reserve = true
	if err := s.Apply([]Change{c}); err != nil || len(reserve) != 1 || len(p.free) != 0 {
		t.Errorf("%v, %d pages of the reserve are left", err, len(reserve))
	}
	c.Start, c.End = 1<<40, 1<<40+pageSize
	if err := s.Apply([]Change{c}); err != ErrMemory {
		t.Errorf("without a reserve: %v", err)
	}
	size := s.Size()
	if err := s.Apply([]Change{{Action: Unmap, End: Limit}}); err != nil || len(p.free) != 4 || p.Used().Tables != 2 || size != 4 || s.Size() != 0 {
		t.Errorf("%v, %d pages are free, %+v, %d and then %d tables", err, len(p.free), p.Used(), size, s.Size())
	}
}

// Copies cross pages, end at a page that is missing or read-only, and never access memory outside of the process.
func TestCopy(t *testing.T) {
	p := memory(50)
	s := testSpace(p)
	first, _ := p.TakeZeroed()
	second, _ := p.TakeZeroed()
	const at = 1 << 40
	must := func(c Change) {
		if err := s.Apply([]Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	must(Change{Action: Install, Start: at, End: at + pageSize, Physical: first, Rights: space.Read | space.Write})
	must(Change{Action: Install, Start: at + pageSize, End: at + 2*pageSize, Physical: second, Rights: space.Read | space.Write})
	text := bytes.Repeat([]byte("0123456789"), 500)
	if n := s.Write(at+3000, text); n != len(text) {
		t.Errorf("%d bytes were written", n)
	}
	got := make([]byte, len(text))
	if n := s.Read(at+3000, got); n != len(text) || !bytes.Equal(got, text) {
		t.Errorf("%d bytes were read", n)
	}
	if n := s.Read(at+2*pageSize-100, got); n != 100 {
		t.Errorf("%d bytes before the end", n)
	}
	must(Change{Action: Restrict, Start: at + pageSize, End: at + 2*pageSize, Rights: space.Read})
	if n := s.Write(at+3000, text); n != 2*pageSize-pageSize-3000 {
		t.Errorf("%d bytes up to a page that must not be written", n)
	}
	for _, va := range []uint64{0, Limit, 1 << 63, 0xffff_8000_0000_0000, 1<<64 - 8, at - 1} {
		if s.Read(va, got) != 0 || s.Write(va, text) != 0 {
			t.Errorf("%#x was copied", va)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.Read(at, got[:64]) }); n != 0 {
		t.Errorf("a copy allocates %v times", n)
	}
}

// After cleanVectors, XRSTOR accepts any state that a program may pass (SDM volume 1, 13.8.1).
func TestCleanVectors(t *testing.T) {
	const components = 7
	b := bytes.Repeat([]byte{0xff}, 1024)
	cleanVectors(b, components)
	le := binary.LittleEndian
	if v := le.Uint64(b[vectorHeader:]); v != components {
		t.Errorf("components %#x", v)
	}
	if !bytes.Equal(b[vectorHeader+8:vectorHeader+64], make([]byte, 56)) {
		t.Error("the header has more")
	}
	if v := le.Uint32(b[vectorMXCSR:]); v != 0xffff {
		t.Errorf("MXCSR %#x", v)
	}
}

// Registers keep their values when they are split from the format of XSAVE and joined to it again.
func TestJoinAndSplit(t *testing.T) {
	var wide, again [16]wideRegister
	for i := range wide {
		n := uint64(4 * i)
		wide[i] = wideRegister{half{n + 1, n + 2}, half{n + 3, n + 4}}
	}
	for _, size := range []int{vectorUpper, vectorUpper + 256} {
		b := make([]byte, size)
		joinVectors(b, &wide, 0x1fa0)
		if m := splitVectors(b, &again); m != 0x1fa0 {
			t.Errorf("MXCSR %#x", m)
		}
		for i := range wide {
			want := wide[i]
			if size == vectorUpper {
				want.high = half{}
			}
			if again[i] != want {
				t.Errorf("%d bytes, register %d: %x", size, i, again[i])
			}
		}
	}
}
