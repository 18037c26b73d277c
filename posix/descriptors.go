package posix

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"syscall"

	"loam/fs"
)

// file is what a descriptor leads to. Its methods never block.
type file interface {
	// events is what is ready now. Asking arms the file: what is not ready is
	// told to the queue when it begins.
	events() Events
	queue() *waitQueue
	read(b []byte) (int, Errno)
	write(b []byte) (int, Errno)
	// close is called once, when the last descriptor has gone.
	close()
	// mode is the type of the file as stat(2) gives it.
	mode() uint32
}

// open is an open file description: what dup shares.
type open struct {
	file
	// Where writes go and reads come from at once: of a device that is the same at every
	// offset. Else nil.
	sink, source fs.Handle
	flags        atomic.Int32 // O_NONBLOCK, O_RDWR and such
	refs         atomic.Int32 // descriptors, and messages under way that carry it
}

// newOpen makes a description; flags are the access mode and what F_GETFL tells.
func newOpen(f file, flags int) *open {
	o := &open{file: f}
	if t, ok := f.(*treeFile); ok {
		o.sink, o.source = t.Sink(), t.Source()
	}
	o.flags.Store(int32(flags))
	return o
}

func (o *open) nonblocking() bool { return o.flags.Load()&syscall.O_NONBLOCK != 0 }

func (o *open) setNonblocking(on bool) {
	if on {
		o.flags.Or(syscall.O_NONBLOCK)
	} else {
		o.flags.And(^syscall.O_NONBLOCK)
	}
}

// settable are the flags that F_SETFL changes.
const settable = syscall.O_APPEND | syscall.O_NONBLOCK | syscall.O_NOATIME

// setFlags is F_SETFL.
func (o *open) setFlags(flags int) {
	flags = int(o.flags.Load())&^settable | flags&settable
	o.flags.Store(int32(flags))
	if f, ok := o.file.(*treeFile); ok {
		f.SetFlags(fs.Flags(flags))
	}
}

// hold counts one more who refers to o; false when the file is closed already.
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

// release undoes one hold. The file is closed with the last one, and whoever
// watches it learns that it has gone.
func (o *open) release() {
	if o.refs.Add(-1) > 0 {
		return
	}
	o.refs.Store(-1)
	o.queue().tell(pollGone)
	o.file.close()
}

// Bounds of a descriptor table.
const (
	chunkSize      = 256
	maxChunks      = 4096
	maxDescriptors = chunkSize * maxChunks // RLIMIT_NOFILE
)

// chunk is a part of a descriptor table, allocated when first needed.
type chunk struct {
	slots   [chunkSize]atomic.Pointer[open]
	pollers [chunkSize]atomic.Pointer[watch] // see Attach
	cloexec [chunkSize / 64]atomic.Uint64
	used    [chunkSize / 64]uint64 // guarded by descriptors.mu
}

// descriptors is a table of file descriptors. Looking one up takes no lock.
// Numbers are handed out from the lowest, as Linux does.
type descriptors struct {
	chunks [maxChunks]atomic.Pointer[chunk]

	mu     sync.Mutex // guards handing out numbers
	lowest int        // every index below is in use
}

// get finds a descriptor, or returns nil.
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

// insert gives o the lowest number that is free and not below from.
// Errors: EMFILE.
func (d *descriptors) insert(o *open, from int, cloexec bool) (int, Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.free(max(from, d.lowest))
	if i < 0 {
		return -1, syscall.EMFILE
	}
	if from <= d.lowest {
		d.lowest = i + 1
	}
	if !o.hold() {
		return -1, syscall.EBADF
	}
	d.place(i, o, cloexec)
	return i, 0
}

// free finds the lowest index at or above i that is not in use, or -1.
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

// place writes a slot and returns what was there.
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

// replace puts o at the descriptor fd, whatever was there before (dup2).
func (d *descriptors) replace(o *open, fd int, cloexec bool) Errno {
	i := uint(fd)
	if i >= maxDescriptors || !o.hold() {
		return syscall.EBADF
	}
	d.mu.Lock()
	old := d.place(int(i), o, cloexec)
	d.mu.Unlock()
	if old != nil {
		old.release()
	}
	return 0
}

// remove takes a descriptor away.
func (d *descriptors) remove(fd int) Errno {
	i := uint(fd)
	if i >= maxDescriptors {
		return syscall.EBADF
	}
	d.mu.Lock()
	c := d.chunks[i/chunkSize].Load()
	if c == nil || c.slots[i%chunkSize].Load() == nil {
		d.mu.Unlock()
		return syscall.EBADF
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

// poller is the place for the watch of a descriptor that is there.
func (d *descriptors) poller(fd int) *atomic.Pointer[watch] {
	return &d.chunks[fd/chunkSize].Load().pollers[fd%chunkSize]
}

// removeAll takes every descriptor away.
func (d *descriptors) removeAll() {
	for _, fd := range d.list() {
		d.remove(fd)
	}
}

// list has the descriptors that are open, by rising number.
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

// cloexec returns and setCloexec sets the flag FD_CLOEXEC of a descriptor that
// is there.
func (d *descriptors) cloexec(fd int) bool {
	return d.chunks[fd/chunkSize].Load().cloexec[fd%chunkSize/64].Load()&(1<<(fd%64)) != 0
}

func (d *descriptors) setCloexec(fd int, on bool) {
	d.chunks[fd/chunkSize].Load().setCloexec(fd%chunkSize, on)
}
