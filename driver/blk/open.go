package blk

import (
	"errors"
	"fmt"

	"loam/driver"
	"loam/driver/virtio"
)

// Features of a disk (section 5.2.3).
const (
	featureSizeMax  virtio.Features = 1 << 1
	featureSegMax   virtio.Features = 1 << 2
	featureReadOnly virtio.Features = 1 << 5
	featureBlock    virtio.Features = 1 << 6
	featureFlush    virtio.Features = 1 << 9
	featureDiscard  virtio.Features = 1 << 13
	featureZeroes   virtio.Features = 1 << 14
)

// Places in the configuration (section 5.2.4).
const (
	configCapacity   = 0 // in sectors
	configSizeMax    = 8
	configSegMax     = 12
	configBlock      = 20
	configMaxDiscard = 36 // in sectors
	configMaxZeroes  = 48
)

// limits are how large a request may be.
type limits struct {
	chunk         int // bytes of data
	segments      int // pieces of data
	segment       int // bytes of a piece
	discard, zero int // sectors
}

// depth is how many descriptors and, with indirect tables, requests there are.
const depth = 64

// mostChunk is the most data of a request: with it, and a piece of a page at each
// end, a chain has as many segments as a ring takes.
const mostChunk = 64 << 10

// Open starts a disk.
func Open(v *virtio.Device) (*Disk, error) {
	if v.Kind() != virtio.Block {
		return nil, fmt.Errorf("%v: %w of blocks", v, virtio.ErrNotVirtio)
	}
	if err := v.Negotiate(0, virtio.Indirect|virtio.EventIndex|featureSizeMax|featureSegMax|featureReadOnly|
		featureBlock|featureFlush|featureDiscard|featureZeroes); err != nil {
		return nil, err
	}
	d := &Disk{device: v, broken: make(chan struct{}, 1), done: make(chan struct{})}
	if err := d.describe(); err != nil {
		v.Close()
		return nil, err
	}
	queues, err := v.SetUp(virtio.QueueSpec{Size: depth, Indirect: true})
	if err != nil {
		return nil, err
	}
	d.queue = queues[0]
	d.waiting = make([]*request, d.queue.Size())
	if err := d.makeRequests(); err != nil {
		v.Close()
		d.freeRequests()
		return nil, fmt.Errorf("%v: %w", v, err)
	}
	if err := v.Start(); err != nil {
		d.freeRequests()
		return nil, err
	}
	d.mu.Lock()
	d.queue.Arm(1)
	d.mu.Unlock()
	d.crew.Start(d.loop)
	return d, nil
}

// describe reads the configuration.
func (d *Disk) describe() error {
	v := d.device
	d.info = Info{
		BlockSize: SectorSize, ReadOnly: v.Has(featureReadOnly), Flushes: v.Has(featureFlush),
		Discards: v.Has(featureDiscard), Zeroes: v.Has(featureZeroes),
	}
	d.limits = limits{chunk: mostChunk, segments: virtio.MaxSegments - 2, segment: mostChunk}
	var err error
	field := func(present bool, size int, f func(c virtio.Config)) {
		if present && err == nil {
			err = v.ReadConfig(size, f)
		}
	}
	var capacity uint64
	field(true, configCapacity+8, func(c virtio.Config) { capacity = c.U64(configCapacity) })
	limit := func(f virtio.Features, at, least int, to *int) {
		field(v.Has(f), at+4, func(c virtio.Config) { *to = bound(*to, c.U32(at), least) })
	}
	limit(featureSizeMax, configSizeMax, SectorSize, &d.limits.segment)
	limit(featureSegMax, configSegMax, 1, &d.limits.segments)
	d.limits.discard, d.limits.zero = mostSectors, mostSectors
	limit(featureDiscard, configMaxDiscard, 0, &d.limits.discard)
	limit(featureZeroes, configMaxZeroes, 0, &d.limits.zero)
	block := uint32(SectorSize)
	field(v.Has(featureBlock), configBlock+4, func(c virtio.Config) { block = c.U32(configBlock) })
	if err != nil {
		return err
	}
	d.info.Discards = d.info.Discards && d.limits.discard > 0
	d.info.Zeroes = d.info.Zeroes && d.limits.zero > 0
	// What is above would be cut into pieces that are no blocks.
	if block < SectorSize || block&(block-1) != 0 || int(block) > d.limits.segment || !d.setCapacity(capacity) {
		return fmt.Errorf("%v: %w: %d sectors, blocks of %d bytes", v, virtio.ErrLayout, capacity, block)
	}
	d.info.BlockSize = int(block)
	return nil
}

// mostSectors bounds a request without data: 1 GiB.
const mostSectors = 1 << 21

// bound is v as far as it is useful; the device may know of no limit at all.
func bound(most int, v uint32, least int) int {
	if uint64(v) >= uint64(most) {
		return most
	}
	return max(int(v), least)
}

// setCapacity takes a size in sectors, if there can be such a disk.
func (d *Disk) setCapacity(sectors uint64) bool {
	const most = 1 << 53 // 4 EiB: what an int64 of bytes counts
	if sectors >= most {
		return false
	}
	d.size.Store(int64(sectors) * SectorSize)
	return true
}

// resize reads the size again, which may have changed (section 5.2.5.1).
func (d *Disk) resize() {
	var capacity uint64
	before := d.Size()
	err := d.device.ReadConfig(configCapacity+8, func(c virtio.Config) { capacity = c.U64(configCapacity) })
	if err == nil && d.setCapacity(capacity) && d.Size() != before {
		d.counters.resizes.Add(1)
	}
}

// makeRequests makes as many as always fit into the ring.
func (d *Disk) makeRequests() error {
	n := d.queue.Size()
	if !d.device.Has(virtio.Indirect) {
		d.limits.segments = min(d.limits.segments, n-2)
		n /= d.limits.segments + 2
	}
	if d.limits.segments < 1 || n < 1 {
		return fmt.Errorf("%w: it is too short for a request", virtio.ErrQueue)
	}
	d.direct = d.limits.segments > 1 && d.reachesHeap()
	// A piece of memory may begin and end in the middle of a page.
	if d.direct {
		d.limits.chunk = min(mostChunk, (d.limits.segments-1)*pageSize)
	} else {
		n = min(n, copies)
	}
	d.limits.chunk = min(d.limits.chunk, d.limits.segment)
	d.limits.chunk -= d.limits.chunk % d.info.BlockSize
	if d.limits.chunk == 0 {
		return fmt.Errorf("%w: its requests are shorter than its blocks", virtio.ErrLayout)
	}
	d.free = make(chan *request, n)
	var err error
	for range n {
		r, e := newRequest(d.device.Machine(), d.limits.chunk, d.direct)
		if e != nil {
			err = errors.Join(err, e)
			break
		}
		d.free <- r
	}
	return err
}

const (
	pageSize = 4096
	copies   = 16 // requests, where data is copied: each has memory for a chunk
)

// freeRequests is for a disk that was never started.
func (d *Disk) freeRequests() {
	for len(d.free) > 0 {
		(<-d.free).close(d.device.Machine())
	}
}

func (d *Disk) reachesHeap() bool {
	var s [virtio.MaxSegments]driver.Segment
	_, ok := d.device.Machine().Segments(make([]byte, SectorSize), s[:])
	return ok
}
