package mem

// Core dumps (core(5)): which memory belongs to one. The choice is Linux's default (/proc/PID/coredump_filter): private memory
// that is anonymous or has been changed, shared memory without a file, and the first page of mapped files, by which a debugger
// finds the file.

// Dumped is a region as a core dump shows it.
type Dumped struct {
	Start, End uint64
	Prot       Prot
	Size       uint64 // number of bytes from Start on that belong to the dump
	Mapped     bool   // the region has a label (Map.Label)
	Offset     uint64 // offset of Start in the mapped file, in bytes
}

// Dump returns the regions of the process for a core dump.
func (m *Map) Dump() (all []Dumped) {
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		d := Dumped{Start: r.start, End: r.end, Prot: r.prot, Size: r.dumped()}
		if r.object != nil {
			d.Mapped, d.Offset = true, r.offset<<PageShift
		}
		all = append(all, d)
		return true
	})
	return all
}

// dumped returns the number of bytes of the region that belong to a core dump.
func (r *Region) dumped() uint64 {
	whole := r.end - r.start
	if r.has(DontDump) {
		return 0
	}
	switch r.object.(type) {
	case nil, *Shared, *Fixed:
		return whole
	}
	switch {
	case r.has(SharedRegion):
		return 0
	case r.touched:
		return whole
	case r.offset == 0 && r.prot.allowed(Load):
		return PageSize
	}
	return 0
}

// Label describes what the region at addr maps. The zero Label stands for private anonymous memory, and for no memory.
func (m *Map) Label(addr uint64) (l Label) {
	m.lock()
	defer m.unlock()
	if r := m.regions.at(addr); r != nil && r.object != nil {
		l = r.object.Label()
	}
	return l
}

// Accessed returns the address of the first page from addr on whose content a core dump shows, but at most end. It leaves out pages
// that were never accessed, of private anonymous memory and of shared memory without a file: their content is zero. A hole of any
// size is left out in one step. All addresses are in one region.
func (m *Map) Accessed(addr, end uint64) uint64 {
	m.lock()
	defer m.unlock()
	r := m.regions.at(addr)
	if r == nil {
		return end
	}
	private := m.private.next(addr>>PageShift, end>>PageShift) << PageShift
	switch o := r.object.(type) {
	case nil:
		return private
	case *Shared:
		index := r.index(addr)
		return min(private, addr+(o.next(index, r.index(end))-index)<<PageShift)
	}
	return addr
}

// Copied returns the address of the first private page of the process from addr on, but at most end.
func (m *Map) Copied(addr, end uint64) uint64 {
	m.lock()
	defer m.unlock()
	return m.private.next(addr>>PageShift, end>>PageShift) << PageShift
}
