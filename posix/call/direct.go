package call

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// inPlace lets the device of a file with O_DIRECT read or write n bytes of the caller's memory without a copy, at an offset or at
// fs.Current. ok is false if that is impossible and nothing was done: the call then copies the memory, which also finds the
// errors of its arguments.
func (c Caller) inPlace(fd int, addr uint64, n int, offset int64, write bool) (result int, errno linux.Errno, ok bool) {
	f := c.Process.InPlace(fd, addr, n, write)
	if f == nil {
		return 0, 0, false
	}
	pieces, unpin := c.Memory.Pin(addr, min(n, most), !write)
	if pieces == nil {
		return 0, 0, false
	}
	p := inUse.Get().(*fs.Pieces)
	p.List, p.Lost = pieces, false
	result, err := f.Transfer(p, offset, write)
	unpin(p.Lost)
	p.List = nil
	inUse.Put(p)
	return result, file.ToErrno(err), err != fs.ErrCopy
}

var inUse = sync.Pool{New: func() any { return new(fs.Pieces) }}
