package mem

// tree is the ordered set of a map's regions: an AVL tree whose nodes are the regions themselves. Each node stores the
// size of the largest hole within its subtree, so that a hole for a new mapping is found in O(log n) steps. Start, end
// and flags of a region must not change while the region is in the tree.
type tree struct {
	root  *Region
	count int
}

// find returns the first region whose end is above addr, or nil.
func (t *tree) find(addr uint64) *Region {
	var best *Region
	for n := t.root; n != nil; {
		if addr < n.end {
			best, n = n, n.left
		} else {
			n = n.right
		}
	}
	return best
}

// at returns the region that contains addr, or nil.
func (t *tree) at(addr uint64) *Region {
	if r := t.find(addr); r != nil && r.start <= addr {
		return r
	}
	return nil
}

// before returns the last region whose start is below addr, or nil.
func (t *tree) before(addr uint64) *Region {
	var best *Region
	for n := t.root; n != nil; {
		if n.start < addr {
			best, n = n, n.right
		} else {
			n = n.left
		}
	}
	return best
}

// each calls f for all regions in order, until f returns false. f must not change the tree.
func (t *tree) each(f func(*Region) bool) { t.root.each(f) }

func (n *Region) each(f func(*Region) bool) bool {
	return n == nil || n.left.each(f) && f(n) && n.right.each(f)
}

// within returns the regions that overlap the range from start to end, in order.
func (t *tree) within(start, end uint64) (all []*Region) {
	for r := t.find(start); r != nil && r.start < end; r = t.find(r.end) {
		all = append(all, r)
	}
	return all
}

// overlaps reports whether a region overlaps the range.
func (t *tree) overlaps(start, end uint64) bool {
	r := t.find(start)
	return r != nil && r.start < end
}

func (t *tree) insert(r *Region) {
	r.left, r.right = nil, nil
	t.root = t.root.insert(r)
	t.count++
}

func (t *tree) remove(r *Region) {
	t.root = t.root.remove(r.start)
	t.count--
}

func (n *Region) insert(r *Region) *Region {
	if n == nil {
		r.update()
		return r
	}
	if r.start < n.start {
		n.left = n.left.insert(r)
	} else {
		n.right = n.right.insert(r)
	}
	return n.balance()
}

func (n *Region) remove(start uint64) *Region {
	switch {
	case n == nil:
		panic("mem: region not in its map")
	case start < n.start:
		n.left = n.left.remove(start)
	case start > n.start:
		n.right = n.right.remove(start)
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		var least *Region
		right := n.right.removeLeast(&least)
		least.left, least.right = n.left, right
		return least.balance()
	}
	return n.balance()
}

func (n *Region) removeLeast(least **Region) *Region {
	if n.left == nil {
		*least = n
		return n.right
	}
	n.left = n.left.removeLeast(least)
	return n.balance()
}

func (n *Region) tall() int8 {
	if n == nil {
		return 0
	}
	return n.height
}

// update computes a node's data on its subtree: height, low, high and maxGap.
func (n *Region) update() {
	n.height = 1 + max(n.left.tall(), n.right.tall())
	n.low, n.high, n.maxGap = n.floor(), n.end, 0
	if l := n.left; l != nil {
		n.low, n.maxGap = l.low, max(l.maxGap, hole(l.high, n.floor()))
	}
	if r := n.right; r != nil {
		n.high, n.maxGap = r.high, max(n.maxGap, r.maxGap, hole(n.end, r.low))
	}
}

// hole returns the size of the hole between two addresses, in bytes. A guard gap may overlap the region below it; the
// size is then 0.
func hole(from, to uint64) uint64 {
	if to <= from {
		return 0
	}
	return to - from
}

func (n *Region) balance() *Region {
	switch n.left.tall() - n.right.tall() {
	case 2:
		if n.left.left.tall() < n.left.right.tall() {
			n.left = n.left.rotateLeft()
		}
		return n.rotateRight()
	case -2:
		if n.right.right.tall() < n.right.left.tall() {
			n.right = n.right.rotateRight()
		}
		return n.rotateLeft()
	}
	n.update()
	return n
}

func (n *Region) rotateRight() *Region {
	l := n.left
	n.left = l.right
	n.update()
	l.right = n
	l.update()
	return l
}

func (n *Region) rotateLeft() *Region {
	r := n.right
	n.right = r.left
	n.update()
	r.left = n
	r.update()
	return r
}

// clone returns a copy of the subtree.
func (n *Region) clone() *Region {
	if n == nil {
		return nil
	}
	c := *n
	c.left, c.right = n.left.clone(), n.right.clone()
	return &c
}
