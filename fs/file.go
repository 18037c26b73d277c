package fs

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
)

// Opening is the result of an open. File.Init makes a File of it.
type Opening struct {
	tree   *Tree
	place  Place
	from   origin
	handle Handle // the open file; nil for a directory, and with PathOnly
	kept   Handle // with PathOnly, keeps a Lasting file after its last name is removed; nil: none
	asked  Flags  // the flags of the open
	made   bool   // the open has created the file
}

// Created reports whether the open has created the file (F_CREATED_QUERY).
func (o *Opening) Created() bool { return o.made }

// File is an open file description, which descriptors made by dup(2) share. Several goroutines may use
// it. Calls that use the offset are serialized.
type File struct {
	Opening
	flags atomic.Int32
	// checkedAt is the value of Tree.capabilitySets at which the file had no capabilities; 0: not yet checked.
	checkedAt atomic.Uint64

	// Properties of the handle, determined once: whether it implements Stream, Endless, Immediate and Restricted.
	stream, endless, immediate, restricted bool

	mu     sync.Mutex
	offset atomic.Int64 // changed with mu held
}

// Init makes f the file that an open has opened. It is called once, before f is used. f is zero, and may be a part of an object of its owner.
func (f *File) Init(o *Opening) {
	f.Opening = *o
	f.flags.Store(int32(o.asked &^ (Create | Exclusive | Truncate | NoFollow)))
	_, f.stream = o.handle.(Stream)
	_, f.immediate = o.handle.(Immediate)
	if f.immediate {
		_, f.endless = o.handle.(Endless)
	}
	_, f.restricted = o.handle.(Restricted)
}

// file returns the File of an open.
func (o *Opening) file() *File {
	f := new(File)
	f.Init(o)
	return f
}

// Place returns the position in the file tree at which the file was opened, and Tree the tree.
func (o *Opening) Place() Place { return o.place }
func (o *Opening) Tree() *Tree  { return o.tree }

// Handle returns the underlying handle, for operations of its own kind. It is nil for a directory and
// with PathOnly.
func (o *Opening) Handle() Handle { return o.handle }

// Flags returns the flags of the open, as changed by SetFlags.
func (f *File) Flags() Flags { return Flags(f.flags.Load()) }

// SetFlags replaces all flags except the access mode, as fcntl(2) does.
func (f *File) SetFlags(flags Flags) {
	f.flags.Store(int32(flags&^accessMode | f.Flags()&accessMode))
}

// Sink returns the handle that writes may use directly, bypassing File. It is not nil only for an
// Endless device opened for writing.
func (f *File) Sink() Handle {
	if f.endless && f.Flags().MayWrite() {
		return f.handle
	}
	return nil
}

// Source returns the handle that reads may use directly: see Sink.
func (f *File) Source() Handle {
	if f.endless && f.Flags().MayRead() {
		return f.handle
	}
	return nil
}

// Immediate reports whether the handle is an Immediate.
func (f *File) Immediate() bool { return f.immediate }

// IsStream reports whether the handle is a Stream, which has no offsets.
func (f *File) IsStream() bool { return f.stream }

// ready returns an error unless the access mode allows the operation and the file has a handle.
func (f *File) ready(may bool) error {
	switch {
	case !may:
		return linux.EBADF
	case f.handle == nil:
		return linux.EISDIR
	}
	return nil
}

// Read reads at the offset and advances it. It returns 0 and no error at the end of the file.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ready(f.Flags().MayRead()); err != nil {
		return 0, err
	}
	if f.stream || f.endless {
		return f.handle.ReadAt(p, 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.transfer().ReadAt(p, f.offset.Load())
	f.offset.Add(int64(n))
	return f.reportEvent(n, Accessed), err
}

// Write writes at the offset, or with Append at the end, and sets the offset to the end of the written
// data.
func (f *File) Write(p []byte) (int, error) {
	flags := f.Flags()
	if err := f.ready(flags.MayWrite()); err != nil {
		return 0, err
	}
	if f.stream || f.endless {
		return f.handle.WriteAt(p, 0)
	}
	if err := f.RemoveCapabilities(len(p)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if flags&Append != 0 {
		n, end, err := f.transfer().Append(p)
		if err == nil {
			f.offset.Store(end)
		}
		return f.reportEvent(n, Modified), err
	}
	n, err := f.transfer().WriteAt(p, f.offset.Load())
	f.offset.Add(int64(n))
	return f.reportEvent(n, Modified), err
}

// ReadAt implements pread(2).
func (f *File) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.readyAt(f.Flags().MayRead(), offset); err != nil {
		return 0, err
	}
	n, err := f.transfer().ReadAt(p, offset)
	return f.reportEvent(n, Accessed), err
}

// WriteAt implements pwrite(2). With Append it writes at the end regardless of offset, as on Linux.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	n, _, err := f.WriteEnd(p, offset)
	return n, err
}

// WriteEnd is like WriteAt, and also returns the offset after the bytes that it has written.
func (f *File) WriteEnd(p []byte, offset int64) (n int, end int64, err error) {
	flags := f.Flags()
	if err := f.readyAt(flags.MayWrite(), offset); err != nil {
		return 0, offset, err
	}
	if err := f.RemoveCapabilities(len(p)); err != nil {
		return 0, offset, err
	}
	if flags&Append != 0 {
		if n, end, err = f.transfer().Append(p); err != nil {
			end = offset
		}
		return f.reportEvent(n, Modified), end, err
	}
	n, err = f.transfer().WriteAt(p, offset)
	return f.reportEvent(n, Modified), offset + int64(n), err
}

// MoveOffset calls transfer with the offset, and sets the offset to its result. Other calls that use the offset wait
// meanwhile. So several calls of ReadAt or WriteEnd by transfer are one transfer at the offset.
func (f *File) MoveOffset(transfer func(offset int64) int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset.Store(transfer(f.offset.Load()))
}

// reportEvent reports event e to the watcher if n > 0, and returns n.
func (f *File) reportEvent(n int, e Event) int {
	if n > 0 {
		f.notify(e)
	}
	return n
}

func (f *File) readyAt(may bool, offset int64) error {
	switch {
	case offset < 0:
		return linux.EINVAL
	case f.stream:
		return linux.ESPIPE
	}
	return f.ready(may)
}

// Values of whence for Seek (lseek(2)).
const (
	SeekSet  = linux.SEEK_SET
	SeekCur  = linux.SEEK_CUR
	SeekEnd  = linux.SEEK_END
	SeekData = linux.SEEK_DATA
	SeekHole = linux.SEEK_HOLE
)

// Offset returns the offset. Unlike Seek, it does not wait for a read or write.
func (f *File) Offset() int64 { return f.offset.Load() }

// Seek implements lseek(2). A file that is not Sparse has no holes.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	switch {
	case f.Flags()&PathOnly != 0:
		return 0, linux.EBADF
	case f.stream:
		return 0, linux.ESPIPE
	case f.endless:
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	to, err := f.seekTarget(offset, whence)
	if err != nil {
		return 0, err
	}
	f.offset.Store(to)
	return to, nil
}

// seekTarget returns the new offset. The caller holds mu. Errors: EINVAL, ENXIO.
func (f *File) seekTarget(offset int64, whence int) (int64, error) {
	size := f.place.Node.Attr().Size
	if s, ok := f.handle.(Sized); ok {
		size = s.Size()
	}
	var from int64
	switch whence {
	case SeekSet:
	case SeekCur:
		from = f.offset.Load()
	case SeekEnd:
		if f.handle == nil {
			return 0, linux.EINVAL
		}
		from = size
	case SeekData, SeekHole:
		if offset < 0 || offset >= size {
			return 0, linux.ENXIO
		}
		return f.seekHole(offset, size, whence == SeekHole)
	default:
		return 0, linux.EINVAL
	}
	to := from + offset
	if to < 0 { // also if the sum overflows
		return 0, linux.EINVAL
	}
	return to, nil
}

// seekHole returns the next hole or the next data. Errors: ENXIO if no data remains.
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
		return 0, linux.ENXIO
	}
	return at, nil
}

// Truncate implements ftruncate(2).
func (f *File) Truncate(size int64) error {
	if size < 0 || !f.Flags().MayWrite() || f.place.Node.Attr().Mode.Type() != Regular {
		return linux.EINVAL
	}
	err := f.RemoveCapabilities(1)
	if err == nil {
		err = f.place.Node.Change(Change{Fields: SetSize, Size: size})
	}
	if err == nil {
		f.notify(Modified)
	}
	return err
}

// Attr implements fstat(2).
func (f *File) Attr() Attr { return f.place.Node.Attr() }

// Sync implements fsync(2).
func (f *File) Sync() error {
	switch {
	case f.Flags()&PathOnly != 0:
		return linux.EBADF
	case f.stream:
		return linux.EINVAL
	case f.handle == nil:
		return f.place.Sync()
	}
	return f.handle.Sync()
}

// SyncData implements fdatasync(2).
func (f *File) SyncData() error {
	if h, ok := f.handle.(DataSyncer); ok && !f.stream && f.Flags()&PathOnly == 0 {
		return h.SyncData()
	}
	return f.Sync()
}

// Close closes the file. It must be called once. Other calls in progress complete as if they had come
// before it, or return EBADF.
func (f *File) Close() error {
	if f.Flags()&PathOnly != 0 {
		if f.kept != nil {
			f.kept.Close()
			f.tree.notifyClosed(f.place.Node)
		}
		return nil
	}
	e := ClosedRead
	if f.Flags().MayWrite() {
		e = ClosedWritten
	}
	f.notify(e)
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.tree.notifyClosed(f.place.Node)
	return err
}
