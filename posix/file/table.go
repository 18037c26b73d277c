package file

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
)

// Limits of a descriptor table.
const (
	chunkSize      = 1024
	maxChunks      = 1024
	MaxDescriptors = chunkSize * maxChunks // largest value of RLIMIT_NOFILE
)

// Most is the setting fs.nr_open: all new descriptors are smaller. Its zero value is MaxDescriptors.
type Most struct{ less atomic.Int64 }

// Get returns the value, and Set changes it to a number of at most MaxDescriptors.
func (m *Most) Get() int64  { return MaxDescriptors - m.less.Load() }
func (m *Most) Set(n int64) { m.less.Store(MaxDescriptors - n) }

// chunk is a part of a descriptor table, allocated on first use.
type chunk struct {
	slots   [chunkSize]atomic.Pointer[Description]
	pollers atomic.Pointer[pollers]
	cloexec [chunkSize / 64]atomic.Uint64
	used    [chunkSize / 64]uint64 // bit set of the descriptors in use; guarded by Table.mu
}

// pollers has the watch of the runtime's poller for each descriptor of a chunk: see Poller.
type pollers [chunkSize]atomic.Pointer[Watch]

// Table is a table of file descriptors. A lookup takes no lock. The lowest free number is
// allocated first, as on Linux.
type Table struct {
	// chunks has nil where no descriptor was ever used. An array of fixed size keeps Get a leaf function that the compiler
	// inlines: each read and write calls it. A list that grows made a write to /dev/null slower by a tenth (os.File.Write in
	// test/bench -guests).
	chunks [maxChunks]atomic.Pointer[chunk]

	mu     sync.Mutex // guards the allocation of descriptors
	lowest int        // all descriptors below lowest are in use
	length int        // number of chunks before the last one that was ever used, and that one; guarded by mu

	others atomic.Int32 // number of processes that share the table, minus one
}

// Share adds a process that shares the table.
func (d *Table) Share() { d.others.Add(1) }

// Shared reports whether several processes share the table.
func (d *Table) Shared() bool { return d.others.Load() > 0 }

// Leave removes a process that shares the table. It returns false for the last one.
func (d *Table) Leave() bool { return d.others.Add(-1) >= 0 }

// Get returns the description of fd, or nil.
func (d *Table) Get(fd int) *Description {
	i := uint(fd)
	if i >= MaxDescriptors {
		return nil
	}
	c := d.chunks[i/chunkSize].Load()
	if c == nil {
		return nil
	}
	return c.slots[i%chunkSize].Load()
}

// chunk returns the chunk that contains descriptor i, which is below MaxDescriptors, or nil.
func (d *Table) chunk(i int) *chunk { return d.chunks[i/chunkSize].Load() }

// Insert allocates the lowest free descriptor in the range [from, most), and makes it
// refer to o. Errors: EMFILE; EBADF if o has been closed.
func (d *Table) Insert(o *Description, from, most int, cloexec bool) (int, linux.Errno) {
	d.mu.Lock()
	i, errno := d.insert(o, from, most, cloexec)
	d.mu.Unlock()
	return i, errno
}

// insert implements Insert. The caller holds mu.
func (d *Table) insert(o *Description, from, most int, cloexec bool) (int, linux.Errno) {
	i := d.free(max(from, d.lowest))
	if i < 0 || i >= most {
		return -1, linux.EMFILE
	}
	if from <= d.lowest {
		d.lowest = i + 1
	}
	if !o.Hold() {
		return -1, linux.EBADF
	}
	d.place(i, o, cloexec)
	return i, 0
}

// Full reports whether no descriptor below most is free.
func (d *Table) Full(most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.free(d.lowest)
	return i < 0 || i >= most
}

// free returns the lowest free descriptor that is at least i, or -1.
func (d *Table) free(i int) int {
	for i < MaxDescriptors {
		c := d.chunk(i)
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

// place makes descriptor i refer to o and returns the description that it referred to before. The caller holds mu.
func (d *Table) place(i int, o *Description, cloexec bool) (old *Description) {
	c := d.chunk(i)
	if c == nil {
		c = new(chunk)
		d.chunks[i/chunkSize].Store(c)
		d.length = max(d.length, i/chunkSize+1)
	}
	c.used[i%chunkSize/64] |= 1 << (i % 64)
	c.setCloexec(i%chunkSize, cloexec)
	return c.slots[i%chunkSize].Swap(o)
}

// Replace makes fd refer to o and releases the description that fd referred to before (dup2).
func (d *Table) Replace(o *Description, fd int, cloexec bool) linux.Errno {
	i := uint(fd)
	if i >= MaxDescriptors || !o.Hold() {
		return linux.EBADF
	}
	d.mu.Lock()
	old := d.place(int(i), o, cloexec)
	d.mu.Unlock()
	if old != nil {
		old.Release()
	}
	return 0
}

// Remove closes the descriptor fd. Errors: EBADF.
func (d *Table) Remove(fd int) linux.Errno { return d.RemoveIf(fd, nil) }

// RemoveIf closes the descriptor fd if it refers to a description. nil means any description. Errors: EBADF.
func (d *Table) RemoveIf(fd int, only *Description) linux.Errno {
	i := uint(fd)
	if i >= MaxDescriptors {
		return linux.EBADF
	}
	d.mu.Lock()
	o := d.Get(fd)
	if o == nil || only != nil && o != only {
		d.mu.Unlock()
		return linux.EBADF
	}
	c := d.chunk(fd)
	c.used[i%chunkSize/64] &^= 1 << (i % 64)
	c.slots[i%chunkSize].Store(nil)
	var w *Watch
	if p := c.pollers.Load(); p != nil {
		w = p[i%chunkSize].Swap(nil)
	}
	d.lowest = min(d.lowest, int(i))
	d.mu.Unlock()
	if w != nil { // the file may have other descriptors and live on, and its queue would keep the watch
		o.Queue().Remove(w)
	}
	o.Release()
	return 0
}

// Poller returns the slot for the runtime poller's watch of fd, which must be open.
func (d *Table) Poller(fd int) *atomic.Pointer[Watch] {
	c := d.chunk(fd)
	p := c.pollers.Load()
	if p == nil {
		c.pollers.CompareAndSwap(nil, new(pollers))
		p = c.pollers.Load()
	}
	return &p[fd%chunkSize]
}

// RemoveAll closes every descriptor.
func (d *Table) RemoveAll() {
	for _, fd := range d.List() {
		d.Remove(fd)
	}
}

// Size returns the number of slots that a table on Linux would have.
func (d *Table) Size() int {
	const least = 64
	size := least
	for _, fd := range d.List() {
		for fd >= size {
			size *= 2
		}
	}
	return size
}

// List returns the open descriptors in ascending order.
func (d *Table) List() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var fds []int
	for i := range d.length {
		c := d.chunks[i].Load()
		if c == nil {
			continue
		}
		for word, used := range c.used {
			for ; used != 0; used &= used - 1 {
				fds = append(fds, i*chunkSize+word*64+bits.TrailingZeros64(used))
			}
		}
	}
	return fds
}

// Copy returns a table whose descriptors refer to the same files. A descriptor that is closed meanwhile may be missing.
func (d *Table) Copy() *Table {
	c := &Table{}
	for _, fd := range d.List() {
		if o := d.Get(fd); o != nil {
			c.Replace(o, fd, d.Cloexec(fd)) // Replace fails only if o has been closed in the meantime
		}
	}
	return c
}

func (c *chunk) setCloexec(i int, on bool) {
	word, bit := &c.cloexec[i/64], uint64(1)<<(i%64)
	switch {
	case on:
		word.Or(bit)
	case word.Load()&bit != 0:
		word.And(^bit)
	}
}

// Cloexec returns and setCloexec sets the FD_CLOEXEC flag of fd, which must be open.
func (d *Table) Cloexec(fd int) bool {
	return d.chunk(fd).cloexec[fd%chunkSize/64].Load()&(1<<(fd%64)) != 0
}

func (d *Table) SetCloexec(fd int, on bool) {
	d.chunk(fd).setCloexec(fd%chunkSize, on)
}
