package disk

// Leaves of extent trees: adding an extent, and removing a range.

// Merge combines an extent with its neighbours in a leaf, and reports whether that is possible.
func (x Extents) Merge(e Extent) bool {
	at := x.Search(e.Logical)
	if at >= 0 && e.Follows(x.Extent(at)) {
		left := x.Extent(at)
		left.Length += e.Length
		if at+1 < x.Count() && x.Extent(at+1).Follows(left) {
			left.Length += x.Extent(at + 1).Length
			x.Delete(at+1, 1)
		}
		x.SetExtent(at, left)
		return true
	}
	if at+1 < x.Count() && x.Extent(at+1).Follows(e) {
		e.Length += x.Extent(at + 1).Length
		x.SetExtent(at+1, e)
		return true
	}
	return false
}

// Remove removes the blocks in a range of the file from a leaf. No extent of the leaf may extend beyond both ends of the
// range. If the function free is not nil, it is called for each removed part; if it returns an error, Remove ends with it.
func (x Extents) Remove(from, to uint64, free func(Extent) error) error {
	for at := max(x.Search(uint32(min(from, MaxLogical))), 0); at < x.Count(); {
		e := x.Extent(at)
		lo, hi := max(from, uint64(e.Logical)), min(to, e.End())
		if uint64(e.Logical) >= to {
			break
		}
		if lo >= hi {
			at++
			continue
		}
		if free != nil {
			if err := free(e.Cut(lo, hi)); err != nil {
				return err
			}
		}
		switch {
		case lo == uint64(e.Logical) && hi == e.End():
			x.Delete(at, 1)
			continue
		case lo == uint64(e.Logical):
			x.SetExtent(at, e.Cut(hi, e.End()))
		default:
			x.SetExtent(at, e.Cut(uint64(e.Logical), lo))
		}
		at++
	}
	return nil
}
