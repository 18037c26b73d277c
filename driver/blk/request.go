package blk

import (
	"encoding/binary"
	"fmt"
	"time"

	"loam/driver"
	"loam/driver/virtio"
)

// kind is what a request asks for.
type kind uint8

const (
	read kind = iota
	write
	flush
	discard
	zeroes
	kinds
)

// types are the numbers of the kinds (section 5.2.6).
var types = [kinds]uint32{read: 0, write: 1, flush: 4, discard: 11, zeroes: 13}

// request is what a caller fills in, one at a time.
type request struct {
	// answered has one place. The disk's loop sends once for every request that is in
	// the ring, and whoever put it there receives.
	answered chan error
	timer    *time.Timer

	memory   driver.Buffer // header, range, status, and data if it is copied
	data     driver.Buffer // the part for data; none if the disk reaches the heap
	pieces   [virtio.MaxSegments]driver.Segment
	out, in  [virtio.MaxSegments]driver.Segment
	kind     kind
	segments int // of pieces
}

// Places in the memory of a request.
const (
	atHeader = 0
	atRange  = 16 // of discard and write zeroes
	atStatus = 32
	atData   = 64

	headerLen = 16
	rangeLen  = 16

	notAnswered = 0xff
)

// bound is how long a disk may take for a request. Disks behind a busy host take
// seconds.
const answerBound = 30 * time.Second

func newRequest(m driver.Machine, chunk int, direct bool) (*request, error) {
	size := atData
	if !direct {
		size += chunk
	}
	b, err := m.Allocate(size, atData)
	if err != nil {
		return nil, err
	}
	r := &request{answered: make(chan error, 1), memory: b, timer: time.NewTimer(answerBound)}
	r.timer.Stop()
	if !direct {
		r.data = driver.Buffer{Bytes: b.Bytes[atData:], Address: b.Address + atData}
	}
	return r, nil
}

func (r *request) close(m driver.Machine) { m.Free(r.memory) }

// status is what the device answered, as an error.
func (r *request) status() error {
	switch s := r.memory.Bytes[atStatus]; s {
	case 0:
		return nil
	case 1:
		return ErrIO
	case 2:
		return ErrUnsupported
	default:
		return fmt.Errorf("%w (status %d)", ErrIO, s)
	}
}

// prepare fills in everything but data.
func (r *request) prepare(k kind, sector uint64) {
	r.kind, r.segments = k, 0
	b := r.memory.Bytes
	binary.LittleEndian.PutUint32(b[atHeader:], types[k])
	binary.LittleEndian.PutUint32(b[atHeader+4:], 0)
	binary.LittleEndian.PutUint64(b[atHeader+8:], sector)
	b[atStatus] = notAnswered
}

// setRange is the data of a discard or write zeroes: one range of sectors.
func (r *request) setRange(sector uint64, n, flags uint32) {
	b := r.memory.Bytes[atRange:]
	binary.LittleEndian.PutUint64(b, sector)
	binary.LittleEndian.PutUint32(b[8:], n)
	binary.LittleEndian.PutUint32(b[12:], flags)
	r.pieces[0] = driver.Segment{Address: r.memory.Address + atRange, Size: rangeLen}
	r.segments = 1
}

// setData names the memory for data: p itself, or the request's own.
func (r *request) setData(d *Disk, p []byte) error {
	if d.direct {
		n, ok := d.device.Machine().Segments(p, r.pieces[:])
		if !ok || n > d.limits.segments {
			return fmt.Errorf("%w: %d bytes in %d pieces", ErrUnsupported, len(p), n)
		}
		r.segments = n
		return nil
	}
	if r.kind == write {
		copy(r.data.Bytes, p)
	}
	r.pieces[0] = driver.Segment{Address: r.data.Address, Size: len(p)}
	r.segments = 1
	return nil
}

// chain is what goes into the ring: the header, the data, and room for the status
// (section 5.2.6).
func (r *request) chain() (out, in []driver.Segment) {
	out = append(r.out[:0], driver.Segment{Address: r.memory.Address + atHeader, Size: headerLen})
	in = r.in[:0]
	if r.kind == read {
		in = append(in, r.pieces[:r.segments]...)
	} else {
		out = append(out, r.pieces[:r.segments]...)
	}
	return out, append(in, driver.Segment{Address: r.memory.Address + atStatus, Size: 1})
}

// acquire takes a request that nobody uses.
func (d *Disk) acquire() (*request, error) {
	select {
	case r := <-d.free:
		return r, nil
	case <-d.done:
		return nil, virtio.ErrClosed
	}
}

func (d *Disk) release(r *request) { d.free <- r }

// do gives the request to the disk and waits for its answer.
func (d *Disk) do(r *request) error {
	out, in := r.chain()
	d.mu.Lock()
	if d.failure != nil {
		defer d.mu.Unlock()
		return d.failure
	}
	d.waiting[d.queue.Add(out, in)] = r
	d.queue.Kick()
	d.mu.Unlock()
	err := d.await(r)
	if err != nil {
		d.counters.failed.Add(1)
		return err
	}
	d.counters.done[r.kind].Add(1)
	return nil
}

// await waits for the answer. A disk that does not give it is stopped, and then
// everybody has one.
func (d *Disk) await(r *request) error {
	r.timer.Reset(answerBound)
	select {
	case err := <-r.answered:
		r.timer.Stop()
		return err
	case <-r.timer.C:
		d.fail(virtio.ErrTimeout)
		return <-r.answered
	}
}
