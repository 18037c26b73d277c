package fs

import "errors"

// Bypass is a Handle that supports O_DIRECT (open(2)).
type Bypass interface {
	Handle
	// Direct returns a Handle of the same open file that moves content directly between p and the storage. It sees the
	// same content as the Handle and as mappings. The storage may require that offsets and lengths are multiples of
	// its sector: reads and writes that are not return EINVAL. Sync and Close of the returned Handle are not called.
	Direct() Handle
	// MemoryAlignment returns the alignment in bytes that a program's memory needs for Direct. Callers check it, since p
	// may be a copy of that memory. 1: any memory.
	MemoryAlignment() int
}

// Pieces is memory of a program in place: parts of its pages, in order.
type Pieces struct {
	List [][]byte
	// Lost reports, after a transfer, that a device which has failed may still access the memory. It must not be reused.
	Lost bool
}

// InPlace is a Handle, returned by Bypass.Direct, whose storage can access a program's memory itself.
type InPlace interface {
	// Transfer reads into p, or writes p if write is set, as ReadAt and WriteAt do. It returns ErrCopy, and has no effect, if
	// only they can do it.
	Transfer(p *Pieces, offset int64, write bool) (n int, err error)
	// MayTransfer is a cheap check before a program's memory is pinned. It returns false if Transfer of n bytes returns ErrCopy.
	MayTransfer(n int, offset int64) bool
}

// ErrCopy is returned if a transfer needs a copy of the program's memory.
var ErrCopy = errors.New("fs: the memory must be copied")

// transfer returns the handle for reads and writes.
func (f *File) transfer() Handle {
	if f.Flags()&Direct != 0 {
		if b, ok := f.handle.(Bypass); ok {
			return b.Direct()
		}
	}
	return f.handle
}

// MemoryAlignment returns the alignment in bytes that a program's memory needs for reads and writes; 1: any memory.
func (f *File) MemoryAlignment() int {
	if f.Flags()&Direct != 0 {
		if b, ok := f.handle.(Bypass); ok {
			return b.MemoryAlignment()
		}
	}
	return 1
}

// AtEnd reports whether a regular file has no content at an offset, or at Current, and after it.
func (f *File) AtEnd(offset int64) bool {
	if offset == Current {
		offset = f.offset.Load()
	}
	a := f.Attr()
	return a.Mode.Type() == Regular && offset >= a.Size
}

// Current is the offset of Transfer that selects the current offset of the file.
const Current = -1

// Transfer reads into p, or writes p if write is set, at an offset or at Current. If it returns ErrCopy, the caller calls Read,
// Write, ReadAt or WriteAt with a copy instead: they also return the errors of calls that the file does not allow.
func (f *File) Transfer(p *Pieces, offset int64, write bool) (int, error) {
	h := f.inPlace(write)
	if h == nil {
		return 0, ErrCopy
	}
	event := Accessed
	if write {
		event = Modified
		if err := f.RemoveCapabilities(len(p.List)); err != nil {
			return 0, err
		}
	}
	if offset != Current {
		n, err := h.Transfer(p, offset, write)
		return f.reportEvent(n, event), err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := h.Transfer(p, f.offset.Load(), write)
	f.offset.Add(int64(n))
	return f.reportEvent(n, event), err
}

// MayTransfer returns false if Transfer of n bytes returns ErrCopy. It may return true in this case, too.
func (f *File) MayTransfer(n int, offset int64, write bool) bool {
	h := f.inPlace(write)
	if h == nil {
		return false
	}
	if offset == Current {
		offset = f.offset.Load()
	}
	return h.MayTransfer(n, offset)
}

// inPlace returns the handle for reads or writes in place, or nil if the file does not allow them.
func (f *File) inPlace(write bool) InPlace {
	flags := f.Flags()
	may := flags.MayRead()
	if write {
		may = flags.MayWrite() && flags&Append == 0
	}
	if !may || f.stream {
		return nil
	}
	h, _ := f.transfer().(InPlace)
	return h
}

// directAllowed reports whether a file of a type can be opened with O_DIRECT.
func directAllowed(kind Mode) bool { return kind != Dir && kind != CharDevice }
