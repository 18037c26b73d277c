package fs

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// File is an open file description: what descriptors share that dup(2) made.
// Several goroutines may use it; those that go by the offset take turns.
type File struct {
	tree   *Tree
	place  Place
	handle Handle // nil for a directory, and with PathOnly
	flags  atomic.Int32

	// What the handle is.
	stream, endless, immediate bool

	mu     sync.Mutex
	offset int64 // of a directory: where in the listing, see ReadDir
}

func newFile(t *Tree, p Place, h Handle, flags Flags) *File {
	f := &File{tree: t, place: p, handle: h}
	f.flags.Store(int32(flags &^ (Create | Exclusive | Truncate | NoFollow)))
	_, f.stream = h.(Stream)
	_, f.endless = h.(Endless)
	_, f.immediate = h.(Immediate)
	return f
}

// Place is where the file was opened.
func (f *File) Place() Place { return f.place }

// Handle is the file below, for what only its own kind can do; nil for a
// directory.
func (f *File) Handle() Handle { return f.handle }

// Flags are those of the open, and SetFlags changes the ones that fcntl(2) may:
// Append, and others that the caller keeps here.
func (f *File) Flags() Flags { return Flags(f.flags.Load()) }

// SetFlags replaces the flags but for the access mode.
func (f *File) SetFlags(flags Flags) {
	f.flags.Store(int32(flags&^accessMode | f.Flags()&accessMode))
}

// Sink is where writes may go without asking File: the handle of a device that is the
// same at every offset, if it was opened for writing. It is nil for all others.
func (f *File) Sink() Handle {
	if f.endless && f.Flags().MayWrite() {
		return f.handle
	}
	return nil
}

// Source is likewise where reads may be made.
func (f *File) Source() Handle {
	if f.endless && f.Flags().MayRead() {
		return f.handle
	}
	return nil
}

// Immediate reports whether the handle is Immediate.
func (f *File) Immediate() bool { return f.immediate }

// ready checks that the file may be used as a caller wants.
func (f *File) ready(may bool) error {
	switch {
	case !may:
		return syscall.EBADF
	case f.handle == nil:
		return syscall.EISDIR
	}
	return nil
}

// Read reads at the offset and moves it. 0 bytes and no error is the end.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ready(f.Flags().MayRead()); err != nil {
		return 0, err
	}
	if f.stream || f.endless {
		return f.handle.ReadAt(p, 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.handle.ReadAt(p, f.offset)
	f.offset += int64(n)
	return f.told(n, Accessed), err
}

// Write writes at the offset, or with Append at the end, and moves the offset
// behind what it wrote.
func (f *File) Write(p []byte) (int, error) {
	flags := f.Flags()
	if err := f.ready(flags.MayWrite()); err != nil {
		return 0, err
	}
	if f.stream || f.endless {
		return f.handle.WriteAt(p, 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if flags&Append != 0 {
		n, end, err := f.handle.Append(p)
		if err == nil {
			f.offset = end
		}
		return f.told(n, Modified), err
	}
	n, err := f.handle.WriteAt(p, f.offset)
	f.offset += int64(n)
	return f.told(n, Modified), err
}

// ReadAt is pread(2).
func (f *File) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.readyAt(f.Flags().MayRead(), offset); err != nil {
		return 0, err
	}
	n, err := f.handle.ReadAt(p, offset)
	return f.told(n, Accessed), err
}

// WriteAt is pwrite(2), which with Append writes at the end all the same.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	flags := f.Flags()
	if err := f.readyAt(flags.MayWrite(), offset); err != nil {
		return 0, err
	}
	if flags&Append != 0 {
		n, _, err := f.handle.Append(p)
		return f.told(n, Modified), err
	}
	n, err := f.handle.WriteAt(p, offset)
	return f.told(n, Modified), err
}

// told tells that n bytes went somewhere, if any did, and returns n.
func (f *File) told(n int, e Event) int {
	if n > 0 {
		f.tree.tell(f.place.Node, e)
	}
	return n
}

func (f *File) readyAt(may bool, offset int64) error {
	switch {
	case offset < 0:
		return syscall.EINVAL
	case f.stream:
		return syscall.ESPIPE
	}
	return f.ready(may)
}

// Values of whence for Seek (lseek(2)).
const (
	SeekSet  = 0
	SeekCur  = 1
	SeekEnd  = 2
	SeekData = 3
	SeekHole = 4
)

// Seek is lseek(2). What does not know of holes (Sparse) is data, all of it.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	switch {
	case f.Flags()&PathOnly != 0:
		return 0, syscall.EBADF
	case f.stream:
		return 0, syscall.ESPIPE
	case f.endless:
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.seekTarget(offset, whence)
	if err != nil {
		return 0, err
	}
	f.offset = to
	return to, nil
}

func (f *File) seekTarget(offset int64, whence int) (int64, error) {
	size := f.place.Node.Attr().Size
	if s, ok := f.handle.(Sized); ok {
		size = s.Size()
	}
	var from int64
	switch whence {
	case SeekSet:
	case SeekCur:
		from = f.offset
	case SeekEnd:
		if f.handle == nil {
			return 0, syscall.EINVAL
		}
		from = size
	case SeekData, SeekHole:
		if offset < 0 || offset >= size {
			return 0, syscall.ENXIO
		}
		return f.seekHole(offset, size, whence == SeekHole)
	default:
		return 0, syscall.EINVAL
	}
	to := from + offset
	switch {
	case to < 0 && offset > 0:
		return 0, syscall.EOVERFLOW
	case to < 0:
		return 0, syscall.EINVAL
	}
	return to, nil
}

// seekHole finds the next hole, or else the next data. Errors: ENXIO if there is no more data.
func (f *File) seekHole(offset, size int64, hole bool) (int64, error) {
	sparse, ok := f.handle.(Sparse)
	switch {
	case !ok && hole:
		return size, nil
	case !ok:
		return offset, nil
	case hole:
		return sparse.NextHole(offset), nil
	}
	at, ok := sparse.NextData(offset)
	if !ok {
		return 0, syscall.ENXIO
	}
	return at, nil
}

// Truncate is ftruncate(2).
func (f *File) Truncate(size int64) error {
	if size < 0 || !f.Flags().MayWrite() || f.place.Node.Attr().Mode.Type() != Regular {
		return syscall.EINVAL
	}
	err := f.place.Node.Change(Change{Fields: SetSize, Size: size})
	if err == nil {
		f.tree.tell(f.place.Node, Modified)
	}
	return err
}

// Attr is fstat(2).
func (f *File) Attr() Attr { return f.place.Node.Attr() }

// Sync is fsync(2).
func (f *File) Sync() error {
	switch {
	case f.Flags()&PathOnly != 0:
		return syscall.EBADF
	case f.stream:
		return syscall.EINVAL
	case f.handle == nil:
		return f.place.Sync()
	}
	return f.handle.Sync()
}

// Close ends the file. It is called once; what is under way then comes before it, or
// fails with EBADF.
func (f *File) Close() error {
	if f.Flags()&PathOnly != 0 {
		return nil
	}
	e := ClosedRead
	if f.Flags().MayWrite() {
		e = ClosedWritten
	}
	f.tree.tell(f.place.Node, e)
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.tree.tellClosed(f.place.Node)
	return err
}
