// Package virtioblk is the driver of virtio block devices (virtio 1.2 section 5.2).
//
// Read in this order: virtioblk.go (the properties of a device), ring.go (a request and its
// completion). The part that all controllers share is in block/controller.
package virtioblk

import (
	"errors"
	"fmt"
	"time"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
	"loam/driver/virtio"
)

// sectorSize is the unit of addresses in bytes, for every block size of the device.
const sectorSize = 512

// Features (section 5.2.3).
const (
	featureSizeMax  virtio.Features = 1 << 1
	featureSegMax   virtio.Features = 1 << 2
	featureReadOnly virtio.Features = 1 << 5
	featureBlock    virtio.Features = 1 << 6
	featureFlush    virtio.Features = 1 << 9
	featureTopology virtio.Features = 1 << 10
	featureQueues   virtio.Features = 1 << 12
	featureDiscard  virtio.Features = 1 << 13
	featureZeroes   virtio.Features = 1 << 14

	wanted = virtio.Indirect | virtio.EventIndex | featureSizeMax | featureSegMax | featureReadOnly | featureBlock |
		featureFlush | featureTopology | featureQueues | featureDiscard | featureZeroes
)

// Offsets in the configuration (section 5.2.4).
const (
	configCapacity   = 0 // capacity of the device in sectors of 512 bytes
	configSizeMax    = 8 // maximum bytes of a memory segment
	configSegMax     = 12
	configBlock      = 20
	configPhysical   = 24 // binary logarithm of the number of logical blocks in a physical block
	configQueues     = 34
	configMaxDiscard = 36 // maximum sectors of one discard
	configMaxZeroes  = 48
)

// Limits of the driver.
const (
	depth       = 64        // maximum number of requests in flight on a queue
	mostBytes   = 128 << 10 // maximum number of bytes of a request
	mostPieces  = 64        // maximum number of memory segments of a request
	mostData    = 32        // maximum number of pieces of Request.Data. A piece that crosses pages becomes several segments
	mostRange   = 1 << 30   // maximum number of bytes of one Discard or WriteZeroes
	mostQueues  = 16
	answerBound = 30 * time.Second // a disk on a busy host may take seconds
)

// Config configures a device.
type Config struct {
	Name   string // name for users; empty: the name of the virtio device
	Queues int    // maximum number of queues; 0: one queue
}

// disk is a device while Open prepares it.
type disk struct {
	v        *virtio.Device
	info     block.Info
	segments int // maximum number of memory segments of a request
	segment  int // maximum number of bytes of a segment
	queues   int
	size     int64
	memory   []driver.Buffer // memory of the rings, one buffer each
}

// Open starts a device. v is closed if Open fails, and when the returned device is closed.
func Open(v *virtio.Device, c Config) (*controller.Device, error) {
	if v.Kind() != virtio.Block {
		return nil, fmt.Errorf("%v: %w of blocks", v, virtio.ErrNotVirtio)
	}
	if err := v.Negotiate(0, wanted); err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = v.String()
	}
	d := &disk{v: v, info: block.Info{Name: c.Name, MaxSegments: mostData, MemoryAlign: 1, Timeout: answerBound}}
	if err := d.describe(max(1, min(c.Queues, mostQueues))); err != nil {
		v.Close()
		return nil, err
	}
	return d.open()
}

// describe reads the configuration.
func (d *disk) describe(queues int) error {
	v := d.v
	i := &d.info
	i.ReadOnly, i.Volatile = v.Has(featureReadOnly), v.Has(featureFlush)
	d.segment, d.segments, d.queues = mostBytes, mostPieces, 1
	var err error
	field := func(f virtio.Features, size int, read func(c virtio.Config)) {
		if v.Has(f) && err == nil {
			err = v.ReadConfig(size, read)
		}
	}
	var capacity uint64
	sector, exponent := uint32(sectorSize), uint8(0)
	field(0, configCapacity+8, func(c virtio.Config) { capacity = c.U64(configCapacity) })
	field(featureSizeMax, configSizeMax+4, func(c virtio.Config) { d.segment = bound(mostBytes, c.U32(configSizeMax)) })
	field(featureSegMax, configSegMax+4, func(c virtio.Config) { d.segments = max(1, bound(mostPieces, c.U32(configSegMax))) })
	field(featureBlock, configBlock+4, func(c virtio.Config) { sector = c.U32(configBlock) })
	field(featureTopology, configPhysical+1, func(c virtio.Config) { exponent = c.U8(configPhysical) })
	field(featureQueues, configQueues+2, func(c virtio.Config) { d.queues = max(1, min(queues, int(c.U16(configQueues)))) })
	field(featureDiscard, configMaxDiscard+4, func(c virtio.Config) { i.MaxDiscard = rangeBound(c.U32(configMaxDiscard)) })
	field(featureZeroes, configMaxZeroes+4, func(c virtio.Config) { i.MaxZeroes = rangeBound(c.U32(configMaxZeroes)) })
	if err != nil {
		return err
	}
	// For larger blocks, requests would be split into pieces that are not whole blocks.
	const mostExponent = 16
	if sector < sectorSize || sector&(sector-1) != 0 || sector > block.MinTransfer || d.segment < block.MinTransfer ||
		exponent > mostExponent || !d.setCapacity(capacity, sector) {
		return fmt.Errorf("%v: %w: %d sectors, blocks of %d bytes << %d, segments of %d", v, virtio.ErrLayout, capacity, sector, exponent, d.segment)
	}
	i.LogicalSector, i.PhysicalSector = int(sector), int(sector)<<exponent
	i.MaxTransfer = d.segment &^ (int(sector) - 1)
	i.MaxDiscard &^= int64(sector) - 1
	i.MaxZeroes &^= int64(sector) - 1
	return nil
}

// bound returns the smaller one of the parameter most and the device's limit v; the device may have no limit.
func bound(most int, v uint32) int { return int(min(uint64(most), uint64(v))) }

func rangeBound(sectors uint32) int64 { return min(int64(sectors)*sectorSize, mostRange) }

// setCapacity sets the size of the device to a number of sectors of 512 bytes. It returns false if
// the device would be implausibly large.
func (d *disk) setCapacity(sectors uint64, block uint32) bool {
	const most = 1 << 53 // 4 EiB: an int64 can hold the size in bytes
	d.size = int64(sectors) * sectorSize &^ int64(block-1)
	return sectors < most
}

// open creates the queues and starts the device.
func (d *disk) open() (*controller.Device, error) {
	v := d.v
	specs := make([]virtio.QueueSpec, d.queues)
	for i := range specs {
		specs[i] = virtio.QueueSpec{Index: i, Size: depth, Indirect: true, Segments: mostPieces + 2}
	}
	queues, err := v.SetUp(specs...)
	if err != nil {
		return nil, err
	}
	slots, err := d.slots(queues)
	if err != nil {
		return nil, err
	}
	var rings []controller.Ring
	for _, q := range queues {
		r, err := d.newRing(q, slots)
		if err != nil {
			v.Close()
			d.free()
			return nil, fmt.Errorf("%v: %w", v, err)
		}
		rings = append(rings, r)
	}
	if err := v.Start(); err != nil {
		d.free()
		return nil, err
	}
	for _, q := range queues {
		q.Arm(1)
	}
	d.info.Depth = slots * len(rings)
	o := controller.Open(controller.Config{
		Machine: v.Machine(), Info: d.info, Size: d.size, Rings: rings, Slots: slots,
		Rules:    controller.Rules{Flush: d.info.Volatile},
		Segments: d.segments, Fits: d.fits, Stop: v.Close, Free: d.free,
	})
	o.Watch(func() { d.watch(o) })
	return o, nil
}

// slots returns the number of requests that always fit into each ring.
func (d *disk) slots(queues []*virtio.Queue) (int, error) {
	n := depth
	for _, q := range queues {
		n = min(n, q.Size())
	}
	if !d.v.Has(virtio.Indirect) {
		d.segments = max(1, min(d.segments, n-2, 16))
		n /= d.segments + 2
	}
	if n < 1 {
		d.v.Close()
		return 0, fmt.Errorf("%v: %w: it is too short for a request", d.v, virtio.ErrQueue)
	}
	return n, nil
}

// fits reports whether no segment is longer than the device accepts.
func (d *disk) fits(pieces []driver.Segment) bool {
	for _, p := range pieces {
		if p.Size > d.segment {
			return false
		}
	}
	return true
}

func (d *disk) free() {
	for _, b := range d.memory {
		d.v.Machine().Free(b)
	}
}

// watch processes changes of the configuration until the device is closed.
func (d *disk) watch(o *controller.Device) {
	for {
		select {
		case <-d.v.Changed():
		case <-o.Done():
			return
		}
		if err := d.v.Check(); errors.Is(err, virtio.ErrClosed) {
			continue // the device has failed: there is no configuration to process
		} else if err != nil {
			o.Fail(err)
			continue
		}
		var capacity uint64
		err := d.v.ReadConfig(configCapacity+8, func(c virtio.Config) { capacity = c.U64(configCapacity) })
		if err == nil && d.setCapacity(capacity, uint32(d.info.LogicalSector)) {
			o.Resize(d.size)
		}
	}
}
