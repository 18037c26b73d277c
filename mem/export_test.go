package mem

import "fmt"

// CheckReferences compares the reference count of every page with the leaves that hold it, in all maps and
// shared objects given, and the number of used pages with the pages that they hold. All maps belong to one system.
func CheckReferences(memory Memory, used int, maps ...*Map) error {
	leaves := map[*leaf]int32{}
	objects := map[*Shared]bool{}
	for _, m := range maps {
		if err := m.check(); err != nil {
			return err
		}
		m.private.collect(leaves)
		m.regions.each(func(r *Region) bool {
			if s, ok := r.object.(*Shared); ok && !objects[s] {
				objects[s] = true
				s.pages.collect(leaves)
			}
			return true
		})
	}
	count, blocks := map[Page]int32{}, uint64(0)
	for l, refs := range leaves {
		if l.refs.Load() != refs {
			return fmt.Errorf("leaf has %d references, is in %d tables", l.refs.Load(), refs)
		}
		l.each(0, BlockPages, func(_ uint64, p Page) { count[p]++ })
		if l.big != nil {
			blocks++
			if l.zeros != 0 || !isBlock(l.pages) {
				return fmt.Errorf("the pages of a block are %v, %d of them zeros", l.pages, l.zeros)
			}
		}
	}
	if now := maps[0].blocks.Use().Now; now != blocks {
		return fmt.Errorf("there are %d blocks, counted %d", blocks, now)
	}
	delete(count, memory.Zero())
	if used >= 0 && len(count) != used {
		return fmt.Errorf("%d pages are allocated, %d are in tables", used, len(count))
	}
	for p, n := range count {
		if refs := memory.References(p).Load(); refs != n {
			return fmt.Errorf("page %d has %d references, is in %d leaves", p, refs, n)
		}
	}
	return nil
}

func (t *table) collect(leaves map[*leaf]int32) {
	for _, s := range t.leaves {
		leaves[s.leaf]++
	}
}

// check verifies the tree, the sums, and the order and merging of regions.
func (m *Map) check() error {
	var last *Region
	var sums Map
	n := 0
	var err error
	m.regions.each(func(r *Region) bool {
		n++
		sums.count(r, 1)
		switch {
		case r.start >= r.end || !aligned(r.start) || !aligned(r.end):
			err = fmt.Errorf("region %x-%x", r.start, r.end)
		case last != nil && last.end > r.start:
			err = fmt.Errorf("regions overlap at %x", r.start)
		case r.height != 1+max(r.left.tall(), r.right.tall()) || r.left.tall()-r.right.tall() > 1 || r.right.tall()-r.left.tall() > 1:
			err = fmt.Errorf("node at %x is out of balance", r.start)
		}
		last = r
		return err == nil
	})
	if err == nil && (n != m.regions.count || sums.sizes != m.sizes) {
		err = fmt.Errorf("%d regions with sizes %v, counted %d and %v", n, sums.sizes, m.regions.count, m.sizes)
	}
	var pages int64
	m.private.each(0, End>>PageShift, func(n uint64, p Page) {
		if p != m.memory.Zero() {
			pages++
		}
		if m.regions.at(n<<PageShift) == nil {
			err = fmt.Errorf("page at %x has no region", n<<PageShift)
		}
	})
	if err == nil && pages != m.private.pages {
		err = fmt.Errorf("%d private pages, counted %d", pages, m.private.pages)
	}
	return err
}
