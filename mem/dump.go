package mem

// Core dumps (core(5)): which memory belongs to one. The choice is Linux's default (/proc/PID/coredump_filter): private memory
// that is anonymous or has been changed, shared memory without a file, and the first page of mapped files, by which a debugger
// finds the file.

// Dumped is a region as a core dump shows it.
type Dumped struct {
	Start, End uint64
	Prot       Prot
	Size       uint64 // number of bytes from Start on that belong to the dump
	File       Label  // the mapped file; its path is empty for other memory
	Offset     uint64 // offset of Start in the file, in bytes
}

// Dump returns the regions of the process for a core dump.
func (m *Map) Dump() (all []Dumped) {
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		d := Dumped{Start: r.start, End: r.end, Prot: r.prot, Size: r.dumped()}
		if r.object != nil {
			if l := r.object.Label(); l.Inode != 0 {
				d.File, d.Offset = l, r.offset<<PageShift
			}
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

// Untouched reports whether the page at addr is private, anonymous and was never accessed: its content is zero.
func (m *Map) Untouched(addr uint64) bool {
	m.lock()
	defer m.unlock()
	r := m.regions.at(addr)
	if r == nil || r.object != nil {
		return false
	}
	p, _ := m.private.get(addr >> PageShift)
	return p == 0
}
