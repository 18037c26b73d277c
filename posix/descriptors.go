package posix

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
)

// file is the object behind an open file description. Its methods never block.
type file interface {
	// events returns the events that are ready now. It also arms the file: every event that is not
	// ready now is reported to the queue when it occurs.
	events() Events
	queue() *waitQueue
	read(b []byte) (int, Errno)
	write(b []byte) (int, Errno)
	// close is called once, after the last reference has been released.
	close()
	// mode returns the file type and permissions as in st_mode of stat(2).
	mode() uint32
}

// open is an open file description. Descriptors made by dup share it.
//
// A call looks a description up without holding a reference, so another goroutine may close the file
// during the call. Methods of a file must therefore be safe after close: they act as if they had come
// before it, or return an error. Messages in transit (SCM_RIGHTS) hold a reference.
type open struct {
	file
	// sink and source are set for a device that reads and writes the same at every offset. They let a
	// call reach the device directly. Otherwise they are nil.
	sink, source fs.Handle
	flags        atomic.Int32  // status flags and access mode: O_NONBLOCK, O_RDWR, ...
	inode        atomic.Uint32 // see number
	owner        atomic.Int32  // F_SETOWN: the process that would get SIGIO, which is never sent
	refs         atomic.Int32  // descriptors, and messages in transit that carry the description; -1: closed
}

// newOpen creates a description. flags holds the access mode and the status flags that F_GETFL returns.
func newOpen(f file, flags int) *open {
	o := &open{file: f}
	if t, ok := f.(*treeFile); ok {
		o.sink, o.source = t.Sink(), t.Source()
	}
	o.flags.Store(int32(flags))
	return o
}

// number returns the inode number of a socket or another file without one of its own. It is allocated at the first use.
func (o *open) number(s *System) uint64 {
	if n := o.inode.Load(); n != 0 {
		return uint64(n)
	}
	o.inode.CompareAndSwap(0, s.serial.next())
	return uint64(o.inode.Load())
}

func (o *open) nonblocking() bool { return o.flags.Load()&linux.O_NONBLOCK != 0 }

func (o *open) setNonblocking(on bool) {
	if on {
		o.flags.Or(linux.O_NONBLOCK)
	} else {
		o.flags.And(^linux.O_NONBLOCK)
	}
}

// setAsync implements FIOASYNC: it changes the flag that asks for SIGIO, which is never sent. Errors: ENOTTY for files and
// other objects that have no such events.
func (o *open) setAsync(on bool) Errno {
	switch o.file.(type) {
	case socket, *pipeEnd, *ptyMaster, *ptySlave, *stream:
	default:
		return linux.ENOTTY
	}
	if on {
		o.flags.Or(linux.O_ASYNC)
	} else {
		o.flags.And(^linux.O_ASYNC)
	}
	return 0
}

// settable is the set of flags that F_SETFL changes.
const settable = linux.O_APPEND | linux.O_NONBLOCK | linux.O_NOATIME

// setFlags implements F_SETFL.
func (o *open) setFlags(flags int) {
	flags = int(o.flags.Load())&^settable | flags&settable
	o.flags.Store(int32(flags))
	if f, ok := o.file.(*treeFile); ok {
		f.SetFlags(fs.Flags(flags))
	}
}

// hold adds a reference to o. It returns false if the file has been closed already.
func (o *open) hold() bool {
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

// release drops a reference. The last one closes the file and reports pollGone to its waiters.
func (o *open) release() {
	if o.refs.Add(-1) > 0 {
		return
	}
	o.refs.Store(-1)
	o.queue().tell(pollGone)
	o.file.close()
}

// Limits of a descriptor table.
const (
	chunkSize      = 256
	maxChunks      = 4096
	maxDescriptors = chunkSize * maxChunks // RLIMIT_NOFILE
)

// chunk is a part of a descriptor table, allocated on first use.
type chunk struct {
	slots   [chunkSize]atomic.Pointer[open]
	pollers [chunkSize]atomic.Pointer[watch] // see Attach
	cloexec [chunkSize / 64]atomic.Uint64
	used    [chunkSize / 64]uint64 // guarded by descriptors.mu
}

// descriptors is a table of file descriptors. A lookup takes no lock. The lowest free number is
// allocated first, as on Linux.
type descriptors struct {
	chunks [maxChunks]atomic.Pointer[chunk]

	mu     sync.Mutex // guards allocation
	lowest int        // every index below it is in use

	others atomic.Int32 // processes that share the table, beside one
}

// get returns the description of fd, or nil.
func (d *descriptors) get(fd int) *open {
	i := uint(fd)
	if i >= maxDescriptors {
		return nil
	}
	c := d.chunks[i/chunkSize].Load()
	if c == nil {
		return nil
	}
	return c.slots[i%chunkSize].Load()
}

// insert allocates the lowest free descriptor that is not below from and below most, and refers it to o. Errors:
// EMFILE; EBADF if o has been closed.
func (d *descriptors) insert(o *open, from, most int, cloexec bool) (int, Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.free(max(from, d.lowest))
	if i < 0 || i >= most {
		return -1, linux.EMFILE
	}
	if from <= d.lowest {
		d.lowest = i + 1
	}
	if !o.hold() {
		return -1, linux.EBADF
	}
	d.place(i, o, cloexec)
	return i, 0
}

// free returns the lowest unused index that is not below i, or -1.
func (d *descriptors) free(i int) int {
	for i < maxDescriptors {
		c := d.chunks[i/chunkSize].Load()
		if c == nil {
			return i
		}
		word := i % chunkSize / 64
		free := ^c.used[word] &^ (1<<(i%64) - 1)
		if free != 0 {
			return i&^63 + bits.TrailingZeros64(free)
		}
		i = i&^63 + 64
	}
	return -1
}

// place stores o in a slot and returns the previous description. The caller holds mu.
func (d *descriptors) place(i int, o *open, cloexec bool) (old *open) {
	c := d.chunks[i/chunkSize].Load()
	if c == nil {
		c = new(chunk)
		d.chunks[i/chunkSize].Store(c)
	}
	c.used[i%chunkSize/64] |= 1 << (i % 64)
	c.setCloexec(i%chunkSize, cloexec)
	return c.slots[i%chunkSize].Swap(o)
}

// replace makes fd refer to o and releases the description that fd referred to before (dup2).
func (d *descriptors) replace(o *open, fd int, cloexec bool) Errno {
	i := uint(fd)
	if i >= maxDescriptors || !o.hold() {
		return linux.EBADF
	}
	d.mu.Lock()
	old := d.place(int(i), o, cloexec)
	d.mu.Unlock()
	if old != nil {
		old.release()
	}
	return 0
}

// remove closes the descriptor fd. Errors: EBADF.
func (d *descriptors) remove(fd int) Errno {
	i := uint(fd)
	if i >= maxDescriptors {
		return linux.EBADF
	}
	d.mu.Lock()
	c := d.chunks[i/chunkSize].Load()
	if c == nil || c.slots[i%chunkSize].Load() == nil {
		d.mu.Unlock()
		return linux.EBADF
	}
	c.used[i%chunkSize/64] &^= 1 << (i % 64)
	o := c.slots[i%chunkSize].Swap(nil)
	w := c.pollers[i%chunkSize].Swap(nil)
	d.lowest = min(d.lowest, int(i))
	d.mu.Unlock()
	if w != nil { // the file may have other descriptors
		o.queue().remove(w)
	}
	o.release()
	return 0
}

// poller returns the slot for the runtime poller's watch of fd, which must be open.
func (d *descriptors) poller(fd int) *atomic.Pointer[watch] {
	return &d.chunks[fd/chunkSize].Load().pollers[fd%chunkSize]
}

// removeAll closes every descriptor.
func (d *descriptors) removeAll() {
	for _, fd := range d.list() {
		d.remove(fd)
	}
}

// list returns the open descriptors in ascending order.
func (d *descriptors) list() []int {
	var fds []int
	for i := range d.chunks {
		c := d.chunks[i].Load()
		if c == nil {
			continue
		}
		for j := range c.slots {
			if c.slots[j].Load() != nil {
				fds = append(fds, i*chunkSize+j)
			}
		}
	}
	return fds
}

func (c *chunk) setCloexec(i int, on bool) {
	if on {
		c.cloexec[i/64].Or(1 << (i % 64))
	} else {
		c.cloexec[i/64].And(^uint64(1 << (i % 64)))
	}
}

// cloexec returns and setCloexec sets the FD_CLOEXEC flag of fd, which must be open.
func (d *descriptors) cloexec(fd int) bool {
	return d.chunks[fd/chunkSize].Load().cloexec[fd%chunkSize/64].Load()&(1<<(fd%64)) != 0
}

func (d *descriptors) setCloexec(fd int, on bool) {
	d.chunks[fd/chunkSize].Load().setCloexec(fd%chunkSize, on)
}
