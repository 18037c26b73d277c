package mem

// Resident returns the memory of the process that is present, in bytes, and the part of it in private pages. It counts
// every page of a mapped object that is present in the object, as Smaps does.
func (m *Map) Resident() (all, private uint64) {
	m.lock()
	defer m.unlock()
	pages := uint64(m.private.pages)
	private = pages
	m.regions.each(func(r *Region) bool {
		if r.object == nil {
			return true
		}
		for n := r.start >> PageShift; n < r.end>>PageShift; n++ {
			if p, _ := m.private.get(n); (p == 0 || !r.private()) && r.object.Peek(r.index(n<<PageShift)) != 0 {
				pages++
			}
		}
		return true
	})
	return pages << PageShift, private << PageShift
}
