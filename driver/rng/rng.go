// Package rng is the driver of virtio entropy devices (virtio 1.2 section 5.4), which provide random bytes from the
// host.
package rng

import (
	"fmt"
	"sync"
	"time"

	"loam/driver"
	"loam/driver/virtio"
)

// chunk is the size of a request in bytes.
const chunk = 512

// bound is the timeout of a request. It is long because the device may have to wait for entropy.
const bound = 10 * time.Second

// Device is an open entropy device. Its methods may be called from several goroutines.
type Device struct {
	device *virtio.Device
	queue  *virtio.Queue
	buffer driver.Buffer
	// turn has capacity 1 and contains a token. Read takes the token before it uses the queue and puts it back
	// afterwards.
	turn    chan struct{}
	done    chan struct{} // closed by Close; unblocks Read
	closing sync.Once
	err     error // result of Close, for later calls
}

// Open initialises and starts a device. On error it closes d.
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

// Read fills p with random bytes. If the device does not respond or its response is invalid, this Read and all
// later ones return an error.
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

// ask requests random bytes once and copies them to p. It returns the number of bytes, at most chunk.
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

// answer waits for the response and returns its length in bytes.
func (r *Device) answer() (uint32, error) {
	if err := r.queue.Wait(bound, r.done); err != nil {
		return 0, err
	}
	_, written, ok, err := r.queue.Take()
	switch {
	case err != nil:
		return 0, err
	case !ok || written == 0: // virtio 1.2 section 5.4.6.1: the device must return at least one byte
		return 0, fmt.Errorf("%v: %w: no random bytes", r.device, virtio.ErrNonsense)
	}
	return written, nil
}

// Close stops the device. A Read in progress returns ErrClosed.
func (r *Device) Close() error {
	r.closing.Do(func() {
		close(r.done)
		<-r.turn // waits until the last Read has returned the token
		if r.err = r.device.Close(); r.err == nil {
			r.device.Machine().Free(r.buffer)
		}
	})
	return r.err
}
