package block

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// IO offers blocking calls on a device, for users that do one thing at a time: tools, tests, a
// device file. A long transfer is split into requests that are in flight together. Any number of
// goroutines may call its methods. The device is not closed by IO, but by its owner.
type IO struct {
	device Device
	info   Info
	next   atomic.Uint32 // number of calls that were allocated: these are distributed over the queues
	mu     sync.Mutex
	// free holds unused calls. The last one is used first, so a program that does one thing at a time stays with one queue.
	free []*call
}

// mostFree is the maximum number of unused calls that are kept.
const mostFree = 8

// window is the maximum number of requests in flight of one call.
const window = 16

// call is the state of one blocking call, such as ReadAt.
type call struct {
	to       *Completions
	queue    int // a call stays with its queue
	requests [window]Request
	data     [window][1][]byte
	batch    [window]*Request
	used     int // number of requests that were used since the call was acquired
}

// NewIO returns blocking calls on d.
func NewIO(d Device) *IO { return &IO{device: d, info: d.Info(), free: make([]*call, 0, mostFree)} }

// Device returns the underlying device.
func (o *IO) Device() Device { return o.device }

// Size returns the capacity in bytes.
func (o *IO) Size() int64 { return o.device.Size() }

// ReadAt fills p from an offset. The offset and the length of p are multiples of the sector. It
// returns io.EOF at the end of the device, as io.ReaderAt requires.
func (o *IO) ReadAt(p []byte, off int64) (int, error) {
	size := o.device.Size()
	if off >= size {
		return 0, io.EOF
	}
	short := off >= 0 && int64(len(p)) > size-off
	if short {
		p = p[:size-off]
	}
	n, err := o.transfer(Read, 0, p, off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// WriteAt stores p at an offset. The offset and the length of p are multiples of the sector. Flush
// makes the data durable.
func (o *IO) WriteAt(p []byte, off int64) (int, error) { return o.transfer(Write, 0, p, off) }

// WriteFUA is WriteAt, but the data is durable when it returns.
func (o *IO) WriteFUA(p []byte, off int64) (int, error) { return o.transfer(Write, FUA, p, off) }

// Flush makes all writes that have completed durable.
func (o *IO) Flush() error { return o.one(Request{Op: Flush}) }

// Discard declares that the contents of n bytes at an offset are no longer needed.
func (o *IO) Discard(off, n int64) error { return o.ranges(Discard, 0, off, n, o.info.MaxDiscard) }

// WriteZeroes makes n bytes at an offset read as zeros. On a device without the operation, it
// writes zeros.
func (o *IO) WriteZeroes(off, n int64, flags Flags) error {
	if o.info.MaxZeroes > 0 {
		return o.ranges(WriteZeroes, flags, off, n, o.info.MaxZeroes)
	}
	zeros := make([]byte, min(n, int64(o.info.MaxTransfer)))
	for done := int64(0); done < n; done += int64(len(zeros)) {
		zeros = zeros[:min(int64(len(zeros)), n-done)]
		if _, err := o.transfer(Write, flags&FUA, zeros, off+done); err != nil {
			return err
		}
	}
	return nil
}

func (o *IO) acquire() *call {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.free) - 1; last >= 0 {
		c := o.free[last]
		o.free = o.free[:last]
		return c
	}
	return &call{to: NewCompletions(), queue: int(o.next.Add(1)) % o.device.Queues()}
}

func (o *IO) release(c *call) {
	for i := range c.used { // the references are dropped, so that the garbage collector can free the memory
		c.requests[i].Data, c.data[i][0] = nil, nil
	}
	c.used = 0
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.free) < mostFree {
		o.free = append(o.free, c)
	}
}

// held is the memory that failed devices may still access: it is never freed.
var held struct {
	mu   sync.Mutex
	data [][]byte
}

// hold keeps the memory of a completed request if the device may still access it. Memory outside the heap is the caller's to keep:
// the error is ErrHeld.
func hold(r *Request) {
	if errors.Is(r.Err, ErrHeld) {
		held.mu.Lock()
		held.data = append(held.data, r.Data...)
		held.mu.Unlock()
	}
}

// transfer splits p into requests, with up to window of them in flight. n is the number of bytes
// before the first request that failed.
func (o *IO) transfer(op Op, flags Flags, p []byte, off int64) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := o.acquire()
	defer o.release(c)
	for n < len(p) && err == nil {
		k := 0
		for at := n; at < len(p) && k < window; k++ {
			piece := p[at:min(len(p), at+o.info.MaxTransfer)]
			c.data[k][0] = piece
			c.requests[k] = Request{Op: op, Flags: flags, Offset: off + int64(at), Data: c.data[k][:], To: c.to}
			at += len(piece)
		}
		var ok int
		ok, err = o.run(c, k)
		for i := range ok {
			n += len(c.data[i][0])
		}
	}
	return n, err
}

// run submits the first k requests of a call and waits for them. It returns the number of requests
// before the first one that failed, and that one's error.
func (o *IO) run(c *call, k int) (ok int, err error) {
	c.used = max(c.used, k)
	for i := range k {
		c.batch[i] = &c.requests[i]
	}
	o.device.Submit(c.queue, c.batch[:k])
	for done := 0; done < k; {
		done += c.to.Wait(c.batch[:])
	}
	for i := range k {
		hold(&c.requests[i])
	}
	for ok < k && c.requests[ok].Err == nil {
		ok++
	}
	if ok < k {
		err = c.requests[ok].Err
	}
	return ok, err
}

// one carries out one request that has no data.
func (o *IO) one(r Request) error {
	c := o.acquire()
	defer o.release(c)
	r.To = c.to
	c.requests[0] = r
	_, err := o.run(c, 1)
	return err
}

// ranges carries out requests without data for a range, each for at most as many bytes as the parameter most.
func (o *IO) ranges(op Op, flags Flags, off, n, most int64) error {
	if most == 0 {
		return fmt.Errorf("%w: %v", ErrUnsupported, op)
	}
	for n > 0 {
		part := min(n, most-most%int64(o.info.LogicalSector))
		if err := o.one(Request{Op: op, Flags: flags, Offset: off, Length: part}); err != nil {
			return err
		}
		off, n = off+part, n-part
	}
	return nil
}

var _ interface {
	io.ReaderAt
	io.WriterAt
} = (*IO)(nil)
