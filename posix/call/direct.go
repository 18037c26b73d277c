package call

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
	"loam/posix/file"
)

// Reads and writes in place, for files with O_DIRECT: the device accesses the caller's memory, and nothing is copied.

// inPlace reads or writes n bytes of the caller's memory in place, at an offset or at fs.Current. ok is false if that is
// impossible and nothing was done: the call then copies the memory, which also finds the errors of its arguments.
func (c Caller) inPlace(o *posix.Opened, addr uint64, n int, offset int64, write bool) (done int, errno linux.Errno, ok bool) {
	f := c.Process.InPlace(o, addr, n, write)
	if f == nil {
		return 0, 0, false
	}
	return c.transfer(f, vector{{Base: addr, Len: uint64(n)}}, offset, write)
}

// vectorInPlace is like inPlace for the vector of a call such as readv(2), with the arguments a.
func (c Caller) vectorInPlace(a Args, offset int64, write bool) (done int, errno linux.Errno, ok bool) {
	f := c.Process.InPlace(c.Process.Opened(fd(a.A1)), 0, 1, write)
	if f == nil {
		return 0, 0, false
	}
	var few fewPieces
	v, errno := c.vector(a.A2, uint64(uint32(a.A3)), &few)
	if errno != 0 || len(v) > len(few) || !v.disjoint() {
		return 0, 0, false
	}
	for _, e := range v {
		if e.Base&uint64(f.MemoryAlignment()-1) != 0 {
			return 0, 0, false
		}
	}
	return c.transfer(f, v, offset, write)
}

// disjoint reports whether no byte is in two buffers: a device may store to the buffers in any order.
func (v vector) disjoint() bool {
	for i, e := range v {
		for _, other := range v[:i] {
			if e.Base < other.Base+other.Len && other.Base < e.Base+e.Len {
				return false
			}
		}
	}
	return true
}

// transfer pins the buffers of a vector, and reads or writes them in place. It pins nothing if the file would need a copy in any case.
func (c Caller) transfer(f file.InPlace, v vector, offset int64, write bool) (done int, errno linux.Errno, ok bool) {
	if !f.MayTransfer(min(v.len(), most), offset, write) {
		return 0, 0, false
	}
	p := inUse.Get().(*fs.Pieces)
	var few [len(fewPieces{})]func(lost bool)
	unpins, left := few[:0], most
	for _, e := range v {
		n := min(int(e.Len), left)
		if left -= n; n == 0 {
			continue
		}
		pieces, unpin := c.Memory.Pin(e.Base, n, !write)
		if pieces == nil {
			p.List = nil // the copy returns EFAULT, or reads and writes memory that cannot be pinned
			break
		}
		p.List, unpins = append(p.List, pieces...), append(unpins, unpin)
	}
	err := fs.ErrCopy
	if len(p.List) > 0 {
		done, err = f.Transfer(p, offset, write)
	}
	for _, unpin := range unpins {
		unpin(p.Lost)
	}
	*p = fs.Pieces{List: p.List[:0]}
	inUse.Put(p)
	return done, file.ToErrno(err), err != fs.ErrCopy
}

var inUse = sync.Pool{New: func() any { return new(fs.Pieces) }}
