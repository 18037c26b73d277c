package memfs

// Holes of a file: pages that were never written, at offsets where the file has no initial content (base).

// NextData implements fs.Sparse.
func (h handle) NextData(offset int64) (int64, bool) { return h.next(offset, true) }

// NextHole implements fs.Sparse.
func (h handle) NextHole(offset int64) int64 {
	at, ok := h.next(offset, false)
	if !ok {
		h.mu.RLock()
		defer h.mu.RUnlock()
		return h.attr.Size
	}
	return at
}

// next returns the first offset at or after offset that is data, or that is in a hole.
func (h handle) next(offset int64, data bool) (int64, bool) {
	f := h.file
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.paged != nil {
		return f.paged.Next(offset, data)
	}
	for at := offset; at < f.attr.Size; at = (at/pageSize + 1) * pageSize {
		if leaf := at / pageSize / leafPages; data && f.isEmpty(leaf) {
			at = (leaf+1)*leafSize - pageSize // the rest of this leaf has no pages: continue at the next leaf
			continue
		}
		if f.isData(at/pageSize) == data {
			return at, true
		}
	}
	return 0, false
}

// isEmpty reports whether a leaf has only holes. It may return false for such a leaf.
func (f *file) isEmpty(leaf int64) bool {
	return f.mapped.memory == nil && leaf*leafSize >= int64(len(f.base)) && (leaf >= int64(len(f.leaves)) || len(f.leaves[leaf]) == 0)
}

func (f *file) isData(page int64) bool {
	return f.mapped.memory != nil || page*pageSize < int64(len(f.base)) || f.page(page) != nil
}
