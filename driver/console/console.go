// Package console is the driver of virtio consoles (virtio 1.2 section 5.3) with one port.
//
// Buffers for input are given to the device in advance, and the device fills them. Output is copied into buffers; Write
// returns when its copy is in the queue. Write blocks while the terminal does not accept output, as on any slow
// terminal; Close unblocks it. After an invalid response from the device, every call returns an error.
package console

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"loam/driver"
	"loam/driver/virtio"
	"loam/internal/crew"
)

// featureSize is VIRTIO_CONSOLE_F_SIZE: the device reports the size of the terminal. Without the feature F_MULTIPORT, a
// console has two queues and a configuration for one port.
const (
	featureSize virtio.Features = 1 << 0

	receiveQueue  = 0
	transmitQueue = 1

	configColumns = 0
	configRows    = 2
)

const (
	buffers    = 8    // number of buffers in each direction
	bufferSize = 4096 // size of each buffer in bytes

	// drainBound is the maximum time that Close waits for the device to accept output.
	drainBound = 2 * time.Second
	// nudgeTime is the interval at which a device that does not accept output is notified again.
	nudgeTime = 5 * time.Second
)

// Device is an open console. Its methods may be called from several goroutines. It implements io.ReadWriteCloser.
type Device struct {
	device *virtio.Device
	memory driver.Buffer
	in     direction
	out    direction

	pending []byte // input that was received and not yet read; only the holder of the token of in.turn uses it

	size     atomic.Uint32 // columns in the lower half, rows in the upper half
	resized  chan struct{} // capacity 1: see Resized
	received atomic.Uint64
	sent     atomic.Uint64

	done    chan struct{} // closed when the console is closed or has failed
	stopped sync.Once     // makes sure that done is closed only once
	closing sync.Once
	crew    crew.Crew
	err     error // result of Close, for later calls
}

// direction is a queue with its buffers, for input or output.
type direction struct {
	queue *virtio.Queue
	// turn has capacity 1 and contains a token. The goroutine that has received the token may use the other fields;
	// it then sends the token back.
	turn  chan struct{}
	slots [buffers]uint16 // slots[h] is the number of the buffer in the chain with head h
	spare []uint16        // numbers of the buffers that are not in the device's queue
	held  uint16          // used only for the field in of Device: the number of the buffer that contains pending
}

// Open initialises and starts a console. On error it closes v.
func Open(v *virtio.Device) (*Device, error) {
	if v.Kind() != virtio.Console {
		return nil, fmt.Errorf("%v: %w of consoles", v, virtio.ErrNotVirtio)
	}
	// EventIndex is not negotiated. QEMU's console writes the event index and then reads the available index without a
	// barrier between (virtio 1.2, 2.7.10), so a notification can get lost: the last output would never be accepted.
	if err := v.Negotiate(0, featureSize); err != nil {
		return nil, err
	}
	queues, err := v.SetUp(virtio.QueueSpec{Index: receiveQueue, Size: buffers}, virtio.QueueSpec{Index: transmitQueue, Size: buffers})
	if err != nil {
		return nil, err
	}
	memory, err := v.Machine().Allocate(2*buffers*bufferSize, bufferSize)
	if err != nil {
		v.Close()
		return nil, fmt.Errorf("%v: %w", v, err)
	}
	d := &Device{device: v, memory: memory, done: make(chan struct{}), resized: make(chan struct{}, 1)}
	d.in.init(queues[0], 0)
	d.out.init(queues[1], buffers)
	d.readSize()
	if err := v.Start(); err != nil {
		v.Machine().Free(memory)
		return nil, err
	}
	d.post()
	d.in.turn <- struct{}{}
	d.out.turn <- struct{}{}
	d.crew.Start(d.loop)
	return d, nil
}

// init initialises a direction, whose buffers are all spare. The parameter first is the
// number of its first buffer. The channel turn does not contain its token yet.
func (x *direction) init(q *virtio.Queue, first int) {
	x.queue, x.turn = q, make(chan struct{}, 1)
	for i := range q.Size() {
		x.spare = append(x.spare, uint16(first+i))
	}
}

// take and give acquire and release the turn of a direction: the right to use its fields. take returns an error when
// the console is closed or has failed.
func (d *Device) take(x *direction) error {
	select {
	case <-x.turn:
	case <-d.done:
		return d.state()
	}
	if err := d.device.Err(); err != nil {
		x.give()
		return err
	}
	return nil
}

func (x *direction) give() { x.turn <- struct{}{} }

// slot returns buffer i.
func (d *Device) slot(i uint16) []byte { return d.memory.Bytes[int(i)*bufferSize:][:bufferSize] }

func (d *Device) segment(i uint16, n int) []driver.Segment {
	return []driver.Segment{{Address: d.memory.Address + uint64(i)*bufferSize, Size: n}}
}

// post gives all spare input buffers to the device.
func (d *Device) post() {
	for _, i := range d.in.spare {
		d.in.slots[d.in.queue.Add(nil, d.segment(i, bufferSize))] = i
	}
	d.in.spare = d.in.spare[:0]
	d.in.queue.Kick()
}

// Read waits for input and returns what is available, at most len(p) bytes.
func (d *Device) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := d.take(&d.in); err != nil {
		return 0, err
	}
	defer d.in.give()
	for len(d.pending) == 0 {
		if err := d.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.pending)
	if d.pending = d.pending[n:]; len(d.pending) == 0 {
		d.in.spare = append(d.in.spare, d.in.held)
		d.post()
	}
	d.received.Add(uint64(n))
	return n, nil
}

// receive waits until the device has filled a buffer.
func (d *Device) receive() error {
	q := d.in.queue
	for !q.Arm(1) {
		select {
		case <-q.C():
		case <-d.done:
			return d.state()
		}
	}
	head, written, ok, err := q.Take()
	if err != nil {
		return d.fail(err)
	}
	if !ok {
		return nil
	}
	d.in.held = d.in.slots[head]
	if d.pending = d.slot(d.in.held)[:written]; written == 0 {
		d.in.spare = append(d.in.spare, d.in.held)
		d.post()
	}
	return nil
}

// Write sends p. It returns when all of p has been copied into buffers for the device.
func (d *Device) Write(p []byte) (n int, err error) {
	if err := d.take(&d.out); err != nil {
		return 0, err
	}
	defer d.out.give()
	for n < len(p) {
		if err := d.room(); err != nil {
			return n, err
		}
		i := d.out.spare[len(d.out.spare)-1]
		d.out.spare = d.out.spare[:len(d.out.spare)-1]
		k := copy(d.slot(i), p[n:])
		d.out.slots[d.out.queue.Add(d.segment(i, k), nil)] = i
		d.out.queue.Kick()
		n += k
		d.sent.Add(uint64(k))
	}
	return n, nil
}

// Flush waits until the device has accepted all output of earlier calls of Write.
func (d *Device) Flush() error {
	if err := d.take(&d.out); err != nil {
		return err
	}
	defer d.out.give()
	for {
		if err := d.reclaim(); err != nil || d.out.queue.Held() == 0 {
			return err
		}
		if err := d.await(); err != nil {
			return err
		}
	}
}

// room returns when a spare output buffer exists. It waits for one if necessary.
func (d *Device) room() error {
	for {
		if err := d.reclaim(); err != nil || len(d.out.spare) > 0 {
			return err
		}
		if err := d.await(); err != nil {
			return err
		}
	}
}

// await waits until the device has accepted some output. After nudgeTime it notifies the device again and returns.
func (d *Device) await() error {
	switch err := d.out.queue.Wait(nudgeTime, d.done); {
	case errors.Is(err, virtio.ErrTimeout):
		d.out.queue.Nudge()
	case err != nil:
		return d.state()
	}
	return nil
}

// reclaim recovers the output buffers that the device has sent.
func (d *Device) reclaim() error {
	for {
		head, _, ok, err := d.out.queue.Take()
		if err != nil {
			return d.fail(err)
		}
		if !ok {
			return nil
		}
		d.out.spare = append(d.out.spare, d.out.slots[head])
	}
}

// Size returns the size of the terminal in characters; zeros if the device does not report it.
func (d *Device) Size() (columns, rows int) {
	v := d.size.Load()
	return int(v & 0xffff), int(v >> 16)
}

// Resized returns a channel that receives when Size has changed. It has capacity 1; the console sends without
// blocking, and never closes it.
func (d *Device) Resized() <-chan struct{} { return d.resized }

// Counters returns the numbers of bytes that were read and written.
func (d *Device) Counters() (received, sent uint64) { return d.received.Load(), d.sent.Load() }

// readSize reads the size of the terminal, and reports whether it has changed.
func (d *Device) readSize() bool {
	if !d.device.Has(featureSize) {
		return false
	}
	var v uint32
	err := d.device.ReadConfig(configRows+2, func(c virtio.Config) { v = uint32(c.U16(configColumns)) | uint32(c.U16(configRows))<<16 })
	return err == nil && d.size.Swap(v) != v
}

// loop reads the terminal size after each change of the configuration, until the console is closed or fails.
func (d *Device) loop() {
	for {
		select {
		case <-d.device.Changed():
		case <-d.done:
			return
		}
		if err := d.device.Check(); err != nil {
			d.fail(err)
			return
		}
		if d.readSize() {
			select {
			case d.resized <- struct{}{}:
			default:
			}
		}
	}
}

// fail marks the device as failed and unblocks all calls.
func (d *Device) fail(err error) error {
	d.device.Fail(err)
	d.stopped.Do(func() { close(d.done) })
	return d.state()
}

// state returns the error with which the console failed, or ErrClosed.
func (d *Device) state() error {
	if err := d.device.Err(); err != nil {
		return err
	}
	return virtio.ErrClosed
}

// Close waits up to drainBound until all output has been accepted, and closes the device. Calls in progress return
// an error.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.drain()
		d.stopped.Do(func() { close(d.done) })
		d.crew.Wait()
		<-d.in.turn // waits until the last user of the input queue has returned the token
		<-d.out.turn
		if d.err = d.device.Close(); d.err == nil {
			d.device.Machine().Free(d.memory)
		}
	})
	return d.err
}

// drain waits until the device has accepted all output, unless another goroutine is writing.
func (d *Device) drain() {
	select {
	case <-d.out.turn:
	default:
		return
	}
	defer d.out.give()
	for start := time.Now(); d.device.Err() == nil && d.reclaim() == nil && d.out.queue.Held() > 0; {
		left := drainBound - time.Since(start)
		if left <= 0 || d.out.queue.Wait(left, d.done) != nil {
			return
		}
	}
}
