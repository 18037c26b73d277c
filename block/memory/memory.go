// Package memory is a block device in the memory of the program: for tests, and as scratch space.
//
// It is sparse: sectors that were never written take no memory, so a device may be larger than the
// machine's memory. Requests complete inside Submit. Snapshot copies a device in time proportional
// to the data written so far. The copy shares its contents with the original until one of the two
// is written to: crash tests make thousands of images that way.
package memory

import (
	"sync"
	"sync/atomic"

	"loam/block"
)

// chunkSize is the unit in which the device allocates memory, in bytes.
const chunkSize = 16 << 10

// chunk is a part of the contents of the device.
type chunk struct {
	data   *[chunkSize]byte
	shared bool // a snapshot of the device uses the chunk too: the chunk is copied before it is written
}

// Config describes a device. The zero value selects the defaults.
type Config struct {
	LogicalSector  int // bytes; 0: 512
	PhysicalSector int // bytes; 0: LogicalSector
	MaxTransfer    int // bytes; 0: 1 MiB
	Queues         int // number of queues; 0: one queue
	ReadOnly       bool
}

// Device is a block device in memory. It has no volatile cache: completed writes are durable as far
// as the program's memory is.
type Device struct {
	info     block.Info
	queues   int
	counters block.Counters
	size     atomic.Int64
	resized  chan struct{} // returned by Resized (see block.Device)

	mu     sync.RWMutex // guards the fields below
	chunks map[int64]chunk
	closed bool
}

var _ block.Device = (*Device)(nil)

// New returns a device of size bytes, all zeros. size is a multiple of the sector size.
func New(size int64, c Config) *Device {
	if c.LogicalSector == 0 {
		c.LogicalSector = 512
	}
	if c.MaxTransfer == 0 {
		c.MaxTransfer = 1 << 20
	}
	if size < 0 || size%int64(c.LogicalSector) != 0 {
		panic("memory: the size is not a whole number of sectors")
	}
	const most = 1 << 62
	d := &Device{
		info: block.Info{
			Name: "memory", LogicalSector: c.LogicalSector, PhysicalSector: max(c.PhysicalSector, c.LogicalSector),
			MaxTransfer: c.MaxTransfer, MaxSegments: 256, MaxDiscard: most, MaxZeroes: most,
			MemoryAlign: 1, Depth: 1, ReadOnly: c.ReadOnly, FUA: true,
		},
		queues: max(c.Queues, 1), chunks: map[int64]chunk{}, resized: make(chan struct{}, 1),
	}
	d.size.Store(size)
	return d
}

// FromImage returns a device with the contents of image, which is copied.
func FromImage(image []byte, c Config) *Device {
	readOnly := c.ReadOnly
	c.ReadOnly = false
	d := New(int64(len(image)), c)
	for at := 0; at < len(image); at += chunkSize {
		part := image[at:min(len(image), at+chunkSize)]
		if !isZero(part) {
			d.write(part, int64(at))
		}
	}
	d.info.ReadOnly = readOnly
	return d
}

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// Info implements block.Device.
func (d *Device) Info() block.Info { return d.info }

// Size implements block.Device.
func (d *Device) Size() int64 { return d.size.Load() }

// Resized implements block.Device.
func (d *Device) Resized() <-chan struct{} { return d.resized }

// Queues implements block.Device.
func (d *Device) Queues() int { return d.queues }

// Stats implements block.Device.
func (d *Device) Stats() block.Stats { return d.counters.Stats() }

// Resize changes the capacity. Data beyond a smaller size is lost.
func (d *Device) Resize(size int64) {
	d.mu.Lock()
	if old := d.size.Swap(size); size < old {
		d.zero(size, old-size)
	}
	d.mu.Unlock()
	d.counters.Resizes.Add(1)
	select {
	case d.resized <- struct{}{}:
	default:
	}
}

// Submit implements block.Device. All requests have completed when it returns.
func (d *Device) Submit(_ int, rs []*block.Request) {
	for _, r := range rs {
		if err := r.Check(&d.info, d.Size()); err != nil {
			d.counters.Reject(r, err)
		} else if d.do(r) {
			d.counters.Finish(r, nil)
		} else {
			d.counters.Reject(r, block.ErrClosed)
		}
	}
}

// do carries out a valid request. It returns false if the device is closed.
func (d *Device) do(r *block.Request) bool {
	if r.Op == block.Read {
		d.mu.RLock()
		defer d.mu.RUnlock()
	} else {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	if d.closed {
		return false
	}
	at := r.Offset
	switch r.Op {
	case block.Read:
		for _, p := range r.Data {
			d.read(p, at)
			at += int64(len(p))
		}
	case block.Write:
		for _, p := range r.Data {
			d.write(p, at)
			at += int64(len(p))
		}
	case block.Discard, block.WriteZeroes:
		d.zero(at, r.Length)
	}
	return true
}

// split returns the chunk at an offset, the offset inside that chunk, and the number of bytes, at
// most n, that are in it.
func split(at, n int64) (index, from, size int64) {
	from = at % chunkSize
	return at / chunkSize, from, min(n, chunkSize-from)
}

func (d *Device) read(p []byte, at int64) {
	for len(p) > 0 {
		i, from, n := split(at, int64(len(p)))
		if c, ok := d.chunks[i]; ok {
			copy(p[:n], c.data[from:])
		} else {
			clear(p[:n])
		}
		p, at = p[n:], at+n
	}
}

func (d *Device) write(p []byte, at int64) {
	for len(p) > 0 {
		i, from, n := split(at, int64(len(p)))
		copy(d.own(i)[from:], p[:n])
		p, at = p[n:], at+n
	}
}

// own returns a chunk for writing. It allocates the chunk, or copies it if it is shared.
func (d *Device) own(i int64) *[chunkSize]byte {
	c, ok := d.chunks[i]
	if ok && !c.shared {
		return c.data
	}
	data := new([chunkSize]byte)
	if ok {
		*data = *c.data
	}
	d.chunks[i] = chunk{data: data}
	return data
}

// zero frees whole chunks and clears parts of chunks. Its time depends on the number of allocated
// chunks, not on the length of the range.
func (d *Device) zero(at, length int64) {
	if length/chunkSize > int64(len(d.chunks)) {
		for i := range d.chunks {
			from, to := max(at, i*chunkSize), min(at+length, (i+1)*chunkSize)
			if from < to {
				d.zeroIn(i, from-i*chunkSize, to-from)
			}
		}
		return
	}
	for length > 0 {
		i, from, n := split(at, length)
		d.zeroIn(i, from, n)
		at, length = at+n, length-n
	}
}

func (d *Device) zeroIn(i, from, n int64) {
	if _, ok := d.chunks[i]; !ok {
		return
	}
	if n == chunkSize {
		delete(d.chunks, i)
		return
	}
	clear(d.own(i)[from : from+n])
}

// Snapshot returns an independent copy, open, with the same contents.
func (d *Device) Snapshot() *Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Device{info: d.info, queues: d.queues, chunks: make(map[int64]chunk, len(d.chunks)), resized: make(chan struct{}, 1)}
	s.size.Store(d.Size())
	for i, c := range d.chunks {
		c.shared = true
		d.chunks[i], s.chunks[i] = c, c
	}
	return s
}

// Image returns a copy of the contents.
func (d *Device) Image() []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	b := make([]byte, d.Size())
	for i, c := range d.chunks {
		copy(b[i*chunkSize:], c.data[:])
	}
	return b
}

// Close implements block.Device. The contents stay for Image and Snapshot.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}
