package mem

import (
	"io"
	"strings"

	"loam/abi/linux"
)

// Query implements PROCMAP_QUERY: it describes the region that covers an address in q, and returns its name. With
// PROCMAP_QUERY_COVERING_OR_NEXT_VMA, it describes the first later region if no region covers the address. Regions
// without the properties of q.QueryFlags are skipped. content reads the file of the region and must be closed; it is nil
// unless q has a buffer for a build ID and the region maps a file. Errors: ENOENT.
func (m *Map) Query(q *linux.ProcmapQuery) (name string, content *Content, err error) {
	m.lock()
	defer m.unlock()
	r := m.regions.find(q.QueryAddr)
	if q.QueryFlags&linux.PROCMAP_QUERY_COVERING_OR_NEXT_VMA != 0 {
		for r != nil && !r.matches(q.QueryFlags) {
			r = m.regions.find(r.end)
		}
	} else if r != nil && (r.start > q.QueryAddr || !r.matches(q.QueryFlags)) {
		r = nil
	}
	if r == nil {
		return "", nil, linux.ENOENT
	}
	q.Start, q.End, q.Flags, q.PageSize = r.start, r.end, r.queryFlags(), PageSize
	if !r.mapsFile() {
		return m.name(r, r.label()), nil, nil
	}
	l := r.label()
	q.Offset, q.Inode, q.Major, q.Minor = r.offset<<PageShift, l.Inode, l.Major, l.Minor
	if f, ok := r.object.(io.ReaderAt); ok && q.BuildIDSize > 0 {
		o := r.object
		o.Attach(m)
		content = &Content{f, func() { m.waited(wait{object: o}) }}
	}
	return l.Path, content, nil
}

// Content is the content of a file that a region maps. It stays after the region has been unmapped, until Close is called.
type Content struct {
	io.ReaderAt
	detach func()
}

// Close ends the use of the content.
func (c *Content) Close() { c.detach() }

// label returns the label of the region's object.
func (r *Region) label() (l Label) {
	if r.object != nil {
		l = r.object.Label()
	}
	return l
}

// mapsFile reports whether the region maps a file. Objects of the kernel, such as the vDSO, have names in brackets.
func (r *Region) mapsFile() bool {
	return r.object != nil && !strings.HasPrefix(r.label().Path, "[")
}

// matches reports whether the region has the properties that the flags of PROCMAP_QUERY demand.
func (r *Region) matches(flags uint64) bool {
	const properties = linux.PROCMAP_QUERY_VMA_READABLE | linux.PROCMAP_QUERY_VMA_WRITABLE | linux.PROCMAP_QUERY_VMA_EXECUTABLE | linux.PROCMAP_QUERY_VMA_SHARED
	return flags&properties&^r.queryFlags() == 0 && (flags&linux.PROCMAP_QUERY_FILE_BACKED_VMA == 0 || r.mapsFile())
}

// queryFlags returns the permissions and the kind of the region as flags of PROCMAP_QUERY.
func (r *Region) queryFlags() (flags uint64) {
	for _, p := range [...]struct {
		has  bool
		flag uint64
	}{
		{r.prot&Read != 0, linux.PROCMAP_QUERY_VMA_READABLE},
		{r.prot&Write != 0, linux.PROCMAP_QUERY_VMA_WRITABLE},
		{r.prot&Exec != 0, linux.PROCMAP_QUERY_VMA_EXECUTABLE},
		{r.has(SharedRegion), linux.PROCMAP_QUERY_VMA_SHARED},
	} {
		if p.has {
			flags |= p.flag
		}
	}
	return flags
}
