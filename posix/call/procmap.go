package call

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// regionFile is an open file /proc/PID/maps.
type regionFile interface {
	// QueryRegion fills in the result of a query, and returns the name of the region and, with wantID, the build ID of its
	// file. Errors: ENOENT, ESRCH.
	QueryRegion(q *linux.ProcmapQuery, wantID bool) (name string, id []byte, err error)
}

// queryRegion implements PROCMAP_QUERY. addr is the address of a struct procmap_query, whose size is its first field.
// Errors: E2BIG, EINVAL, ENAMETOOLONG for a buffer that is too small; ENOTTY for another file; EBADF if another thread has closed
// the descriptor.
func (c Caller) queryRegion(fd int, addr uint64) linux.Errno {
	o := c.Process.Opened(fd)
	if o == nil {
		return linux.EBADF
	}
	f, ok := o.File.(interface{ Handle() fs.Handle })
	if !ok {
		return linux.ENOTTY
	}
	maps, ok := f.Handle().(regionFile)
	if !ok {
		return linux.ENOTTY
	}
	b, errno := c.regionQuery(addr)
	if errno != 0 {
		return errno
	}
	q := linux.ParseProcmapQuery(b)
	const all = 2*linux.PROCMAP_QUERY_FILE_BACKED_VMA - 1
	if q.QueryFlags&^all != 0 || (q.NameSize == 0) != (q.NameAddr == 0) || (q.BuildIDSize == 0) != (q.BuildIDAddr == 0) {
		return linux.EINVAL
	}
	name, id, err := maps.QueryRegion(&q, q.BuildIDSize > 0)
	if err != nil {
		return file.ToErrno(err)
	}
	var text []byte
	if q.NameSize > 0 && name != "" {
		text = append([]byte(name), 0)
	}
	if len(id) > int(q.BuildIDSize) || len(text) > int(min(q.NameSize, linux.PATH_MAX)) {
		return linux.ENAMETOOLONG
	}
	q.NameSize, q.BuildIDSize = uint32(len(text)), uint32(len(id))
	for _, out := range [...]struct {
		addr uint64
		b    []byte
	}{{q.NameAddr, text}, {q.BuildIDAddr, id}} {
		if len(out.b) > 0 {
			if errno := c.Memory.Write(out.addr, out.b); errno != 0 {
				return errno
			}
		}
	}
	q.Put(b[:linux.SizeofProcmapQuery])
	return c.Memory.Write(addr, b[:min(q.Size, linux.SizeofProcmapQuery)])
}

// regionQuery reads a struct procmap_query. A caller with an older, smaller structure gets zeros for the rest. A larger
// structure must end with zeros.
func (c Caller) regionQuery(addr uint64) ([]byte, linux.Errno) {
	const most = 4096
	size, errno := parse(c, addr, 8, le.Uint64)
	switch {
	case errno != 0:
		return nil, errno
	case size > most:
		return nil, linux.E2BIG
	case size < linux.SizeofProcmapInput:
		return nil, linux.EINVAL
	}
	b := make([]byte, max(size, linux.SizeofProcmapQuery))
	if errno := c.Memory.Read(b[:size], addr); errno != 0 {
		return nil, errno
	}
	le.PutUint64(b, size) // another thread may have changed it
	for _, x := range b[linux.SizeofProcmapQuery:] {
		if x != 0 {
			return nil, linux.E2BIG
		}
	}
	return b, 0
}
