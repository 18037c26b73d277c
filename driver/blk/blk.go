// Package blk is the driver of virtio block devices (virtio 1.2 section 5.2):
// disks.
//
// Read in this order: blk.go (what a disk is), open.go, request.go (one request and
// its answer), transfer.go (what a caller asks for, cut into requests).
//
// A caller puts its request into the ring itself, under a lock, and waits for its
// own answer; one goroutine takes the answers. So any number of callers have
// requests on the way, and nobody's waits for another's. A disk that does not answer
// within a bound, or answers nonsense, is stopped, and everybody who waits is told.
package blk

import (
	"errors"
	"sync"
	"sync/atomic"

	"loam/driver/virtio"
	"loam/internal/crew"
)

// SectorSize is the unit of the device's addresses, in bytes, whatever its blocks
// are.
const SectorSize = 512

// Errors.
var (
	ErrIO          = errors.New("blk: the disk could not do it")
	ErrUnsupported = errors.New("blk: the disk does not do that")
	ErrReadOnly    = errors.New("blk: the disk can only be read")
	ErrRange       = errors.New("blk: outside of the disk")
	ErrAlign       = errors.New("blk: not a whole number of blocks")
)

// Disk is an open device. Its methods may be called from several goroutines.
type Disk struct {
	device *virtio.Device
	info   Info
	size   atomic.Int64 // in bytes: a disk may grow
	limits limits
	direct bool // the disk reaches the Go heap

	// free holds the requests that nobody uses. Callers take one and put it back;
	// it has room for all of them, and is never closed.
	free chan *request

	mu      sync.Mutex // guards all below
	queue   *virtio.Queue
	waiting []*request // by head of their chains
	failure error      // why the disk is of no use any more

	counters counters
	broken   chan struct{} // has one place: fail sends (full: it is known), loop receives
	done     chan struct{} // closed by Close
	closing  sync.Once
	crew     crew.Crew
	err      error // of closing
}

// Info describes a disk. It does not change while the disk is open.
type Info struct {
	BlockSize int // bytes: reads and writes are of whole blocks
	ReadOnly  bool
	Flushes   bool // it has a cache that Flush writes out
	Discards  bool
	Zeroes    bool // WriteZeroes works
}

// Info describes the disk.
func (d *Disk) Info() Info { return d.info }

// Size is how many bytes there are.
func (d *Disk) Size() int64 { return d.size.Load() }

// Counters count since the disk was opened.
type Counters struct {
	Reads, Writes, Flushes, Discards, Zeroes uint64 // requests that were answered well
	Failed                                   uint64 // requests that were answered with an error
	Resizes                                  uint64
}

type counters struct {
	done    [kinds]atomic.Uint64
	failed  atomic.Uint64
	resizes atomic.Uint64
}

// Counters are those of the disk.
func (d *Disk) Counters() Counters {
	c := &d.counters
	return Counters{
		Reads: c.done[read].Load(), Writes: c.done[write].Load(), Flushes: c.done[flush].Load(),
		Discards: c.done[discard].Load(), Zeroes: c.done[zeroes].Load(),
		Failed: c.failed.Load(), Resizes: c.resizes.Load(),
	}
}

// loop takes answers, and hears of changes.
func (d *Disk) loop() {
	for {
		select {
		case <-d.queue.C():
			d.takeAnswers()
		case <-d.device.Changed():
			if err := d.device.Check(); err != nil {
				d.fail(err)
			} else {
				d.resize()
			}
		case <-d.broken:
			d.stop()
			return
		case <-d.done:
			return
		}
	}
}

// takeAnswers wakes those whose requests have been answered.
func (d *Disk) takeAnswers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		head, _, ok, err := d.queue.Take()
		if err != nil {
			d.failLocked(err)
			return
		}
		if ok {
			r := d.waiting[head]
			d.waiting[head] = nil
			r.answered <- r.status()
		} else if !d.queue.Arm(1) {
			return
		}
	}
}

// fail has the disk stopped, for the first reason that is found.
func (d *Disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failLocked(err)
}

func (d *Disk) failLocked(err error) {
	if d.failure != nil {
		return
	}
	d.device.Fail(err)
	if d.failure = d.device.Err(); d.failure == nil {
		d.failure = err
	}
	select {
	case d.broken <- struct{}{}:
	default:
	}
}

// stop resets the device, which has memory of callers, and tells them.
func (d *Disk) stop() {
	d.err = d.device.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range d.waiting {
		if r != nil {
			d.waiting[i] = nil
			r.answered <- d.failure
		}
	}
}

// Close stops the disk. Requests that are on the way fail; what was written and not
// flushed may be lost.
func (d *Disk) Close() error {
	d.closing.Do(func() {
		close(d.done)
		d.crew.Wait()
		d.mu.Lock()
		if d.failure == nil {
			d.failure = virtio.ErrClosed
		}
		d.mu.Unlock()
		d.stop()
		if d.err == nil {
			for range cap(d.free) { // every caller has left
				(<-d.free).close(d.device.Machine())
			}
		}
	})
	return d.err
}
