// Package rng is the driver of virtio entropy devices (virtio 1.2 section 5.4):
// random bytes that the monitor gives.
package rng

import (
	"fmt"
	"sync"
	"time"

	"loam/driver"
	"loam/driver/virtio"
)

// chunk is how many bytes are asked for at once.
const chunk = 512

// bound is how long the device may take for an answer: it may wait for entropy of
// its own.
const bound = 10 * time.Second

// Device is an open device. Its methods may be called from several goroutines.
type Device struct {
	device *virtio.Device
	queue  *virtio.Queue
	buffer driver.Buffer
	// turn has one place, whose token is whoever may use the queue: Read takes it and
	// puts it back.
	turn    chan struct{}
	done    chan struct{} // closed by Close: whoever waits ends
	closing sync.Once
	err     error // of closing
}

// Open starts a device.
func Open(d *virtio.Device) (*Device, error) {
	if d.Kind() != virtio.Entropy {
		return nil, fmt.Errorf("%v: %w of entropy", d, virtio.ErrNotVirtio)
	}
	if err := d.Negotiate(0, virtio.EventIndex); err != nil {
		return nil, err
	}
	queues, err := d.SetUp(virtio.QueueSpec{Size: virtio.MinRing})
	if err != nil {
		return nil, err
	}
	buffer, err := d.Machine().Allocate(chunk, 8)
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("%v: %w", d, err)
	}
	r := &Device{device: d, queue: queues[0], buffer: buffer, turn: make(chan struct{}, 1), done: make(chan struct{})}
	r.turn <- struct{}{}
	if err := d.Start(); err != nil {
		d.Machine().Free(buffer)
		return nil, err
	}
	return r, nil
}

// Read fills p with random bytes. If the device does not answer, or answers
// nonsense, that is the error of this Read and of all later ones.
func (r *Device) Read(p []byte) (n int, err error) {
	select {
	case <-r.turn:
	case <-r.done:
		return 0, virtio.ErrClosed
	}
	defer func() { r.turn <- struct{}{} }()
	for n < len(p) {
		got, err := r.ask(p[n:])
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ask has the device fill the front of p once.
func (r *Device) ask(p []byte) (int, error) {
	if err := r.device.Err(); err != nil {
		return 0, err
	}
	want := min(len(p), chunk)
	clear(r.buffer.Bytes)
	r.queue.Add(nil, []driver.Segment{{Address: r.buffer.Address, Size: want}})
	r.queue.Kick()
	written, err := r.answer()
	if err != nil {
		r.device.Fail(err)
		return 0, err
	}
	return copy(p[:want], r.buffer.Bytes[:written]), nil
}

// answer waits for what was asked for.
func (r *Device) answer() (uint32, error) {
	if err := r.queue.Wait(bound, r.done); err != nil {
		return 0, err
	}
	_, written, ok, err := r.queue.Take()
	switch {
	case err != nil:
		return 0, err
	case !ok || written == 0: // section 5.4.6.1: at least one byte
		return 0, fmt.Errorf("%v: %w: no random bytes", r.device, virtio.ErrNonsense)
	}
	return written, nil
}

// Close stops the device. A Read that waits ends.
func (r *Device) Close() error {
	r.closing.Do(func() {
		close(r.done)
		<-r.turn // whoever had it has ended
		if r.err = r.device.Close(); r.err == nil {
			r.device.Machine().Free(r.buffer)
		}
	})
	return r.err
}
