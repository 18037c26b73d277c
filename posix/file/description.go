package file

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
)

// File is the object to which an open file description refers. Its methods never block.
type File interface {
	// Events returns the events that are ready now. A call also requests notifications: the file reports each event that is
	// not ready now to its queue when the event occurs.
	Events() Events
	Queue() *Queue
	Read(b []byte) (int, linux.Errno)
	Write(b []byte) (int, linux.Errno)
	// Close is called once, after the last reference has been released.
	Close()
	// Mode returns the file type and permissions as in st_mode of stat(2).
	Mode() uint32
}

// Stat is the result of stat(2) and statx(2).
type Stat struct {
	fs.Attr
	On fs.Device // device of the file system that contains the file
}

// Described is implemented by files that have all attributes of stat(2). For other files, only the result of Mode is known.
type Described interface{ Stat() Stat }

// Named is implemented by files outside the file tree that have a name in /proc/PID/fd (proc(5)).
type Named interface{ Name() string }

// Detailed is implemented by files with lines of their own in /proc/PID/fdinfo (proc(5)).
type Detailed interface{ Details() string }

// Description is an open file description. Descriptors made by dup share it.
//
// A call looks a description up without holding a reference, so another goroutine may close the file
// during the call. Methods of a file must therefore be safe after close: they act as if they had come
// before it, or return an error. Messages in transit (SCM_RIGHTS) hold a reference.
type Description struct {
	File
	// sink and source are set for a device whose reads and writes do not depend on the offset, such as /dev/null. A call
	// then uses the device directly. For other files they are nil.
	sink, source fs.Handle
	// takesStack, immediate and discards are the results of the methods TakesStack, Immediate and Discards.
	takesStack, immediate, discards bool

	Flags  atomic.Int32           // status flags and access mode: O_NONBLOCK, O_RDWR, ...
	inode  atomic.Uint32          // inode number that Number has allocated; 0: none yet
	owner  atomic.Pointer[Owner]  // receiver of signals about the file; nil: none
	asking atomic.Pointer[asking] // watch that reports events to the owner; nil: none
	refs   atomic.Int32           // number of references from descriptors and from messages in transit (SCM_RIGHTS); -1: closed
}

// MayRead reports whether the access mode allows reads.
func (d *Description) MayRead() bool { return d.Flags.Load()&linux.O_ACCMODE != linux.O_WRONLY }

// MayWrite reports whether the access mode allows writes.
func (d *Description) MayWrite() bool { return d.Flags.Load()&linux.O_ACCMODE != linux.O_RDONLY }

// PathOnly reports whether the file was opened with O_PATH. Most calls reject its descriptors with EBADF.
func (d *Description) PathOnly() bool { return d.Flags.Load()&linux.O_PATH != 0 }

// direct is implemented by files of the file tree. Its methods return handles for direct access to a device: see fs.File.
type direct interface {
	Sink() fs.Handle
	Source() fs.Handle
	Immediate() bool
	IsStream() bool
	ReadAt(b []byte, offset int64) (int, error)
	WriteEnd(b []byte, offset int64) (n int, end int64, err error)
	MoveOffset(transfer func(offset int64) int64)
}

// NewDescription creates a description. flags holds the access mode and the status flags that F_GETFL returns.
func NewDescription(f File, flags int) *Description {
	o := new(Description)
	o.Init(f, flags)
	return o
}

// Init makes o the description of a new file, as NewDescription does. o is zero, and may be a part of the object of the file.
func (o *Description) Init(f File, flags int) {
	o.File = f
	if d, ok := f.(direct); ok {
		o.sink, o.source, o.immediate = d.Sink(), d.Source(), d.Immediate()
		e, ok := o.sink.(fs.Endless)
		o.discards = ok && e.Discards()
	}
	if f, ok := f.(interface{ TakesStack() bool }); ok {
		o.takesStack = f.TakesStack()
	}
	o.Flags.Store(int32(flags))
}

// Number returns the inode number of a file that has no inode in the file tree, such as a socket. It is allocated by the
// first call.
func (o *Description) Number(s *Serial) uint64 {
	if n := o.inode.Load(); n != 0 {
		return uint64(n)
	}
	o.inode.CompareAndSwap(0, s.Next())
	return uint64(o.inode.Load())
}

func (o *Description) Nonblocking() bool { return o.Flags.Load()&linux.O_NONBLOCK != 0 }

func (o *Description) SetNonblocking(on bool) {
	if on {
		o.Flags.Or(linux.O_NONBLOCK)
	} else {
		o.Flags.And(^linux.O_NONBLOCK)
	}
}

// settable is the set of status flags that F_SETFL can change.
const settable = linux.O_APPEND | linux.O_NONBLOCK | linux.O_NOATIME

// SetFlags implements F_SETFL. Only files of the tree and pipes have O_DIRECT.
func (o *Description) SetFlags(flags int) {
	f, ok := o.File.(interface{ SetFlags(fs.Flags) })
	mask := settable
	if ok {
		mask |= linux.O_DIRECT
	}
	flags = int(o.Flags.Load())&^mask | flags&mask
	o.Flags.Store(int32(flags))
	if ok {
		f.SetFlags(fs.Flags(flags))
	}
}

// Hold adds a reference to o. It returns false if the file has been closed already.
func (o *Description) Hold() bool {
	for {
		n := o.refs.Load()
		if n < 0 {
			return false
		}
		if o.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Carrier is a file that keeps references to descriptions, such as a Unix socket with messages (SCM_RIGHTS).
type Carrier interface {
	// CloseCarrier is like Close. It returns the descriptions, which the caller releases.
	CloseCarrier() []*Description
}

// Release drops a reference. When the last reference is dropped, the file is closed, and PollGone is reported to its waiters.
func (o *Description) Release() { ReleaseAll(o.release()) }

// ReleaseAll drops a reference to each description, and to the descriptions that files closed by this have kept. A long chain of such files
// needs no deep stack.
func ReleaseAll(list []*Description) {
	for len(list) > 0 {
		last := len(list) - 1
		more := list[last].release()
		list = append(list[:last], more...)
	}
}

// release drops a reference. It returns the descriptions that the file has kept, if the file is closed.
func (o *Description) release() []*Description {
	if o.refs.Add(-1) > 0 {
		return nil
	}
	o.refs.Store(-1)
	o.endAsync()
	o.Queue().Notify(PollGone)
	if c, ok := o.File.(Carrier); ok {
		return c.CloseCarrier()
	}
	o.File.Close()
	return nil
}

// Sink returns the handle to which write calls may write directly, and Source the handle for read calls: see fs.File.Sink.
// They return nil for most files.
func (o *Description) Sink() fs.Handle   { return o.sink }
func (o *Description) Source() fs.Handle { return o.source }

// TakesStack reports whether read and write calls may pass memory on the caller's stack. It is true for files that never
// pass the memory to another goroutine while they wait: a Go stack can move.
func (o *Description) TakesStack() bool { return o.takesStack || o.immediate }

// Immediate reports whether reads and writes never wait, and may use memory on the caller's stack: see fs.Immediate.
func (o *Description) Immediate() bool { return o.immediate }

// Discards reports whether writes have no effect and never fail, as on /dev/null.
func (o *Description) Discards() bool { return o.discards }

// HasOffsets reports whether the file has offsets. Without them, pread64(2) and pwrite64(2) return ESPIPE.
func (o *Description) HasOffsets() bool {
	f, ok := o.File.(direct)
	return ok && !f.IsStream()
}

// ReadAt implements pread64(2) for an open file.
func (o *Description) ReadAt(b []byte, offset int64) (int, linux.Errno) {
	f, ok := o.File.(direct)
	if !ok {
		return -1, linux.ESPIPE
	}
	n, err := f.ReadAt(b, offset)
	if err != nil {
		return -1, ToErrno(err)
	}
	return n, 0
}

// WriteAt implements pwrite64(2) for an open file.
func (o *Description) WriteAt(b []byte, offset int64) (int, linux.Errno) {
	n, _, errno := o.WriteEnd(b, offset)
	return n, errno
}

// WriteEnd is like WriteAt, and also returns the offset after the bytes that it has written.
func (o *Description) WriteEnd(b []byte, offset int64) (n int, end int64, errno linux.Errno) {
	f, ok := o.File.(direct)
	if !ok {
		return -1, offset, linux.ESPIPE
	}
	n, end, err := f.WriteEnd(b, offset)
	if err != nil && n == 0 {
		return -1, offset, ToErrno(err)
	}
	return n, end, 0
}

// MoveOffset calls transfer with the current offset, and stores the offset that transfer returns. Other calls that use the
// offset wait meanwhile. The file has offsets.
func (o *Description) MoveOffset(transfer func(offset int64) int64) {
	o.File.(direct).MoveOffset(transfer)
}
