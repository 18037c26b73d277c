// Package fault wraps a device and damages what passes it, each direction by its
// own rates: frames are lost, doubled, corrupted, delayed and put out of order.
// The same seed does the same to the same sequence of frames, whatever the
// timing.
//
// Every fault is counted, and nothing is lost that is not: a device that is too
// slow, or more delay than Limit holds, holds up the sender.
//
// A frame is what the device sees. With segmentation offload that is up to 64 kB,
// lost or delayed as one; to lose single segments, wrap a device without
// offloads. A frame that is to be corrupted is finished first, as hardware would
// do, so that the damage can be seen: its checksum is computed, and a GSO frame
// is cut up and one of its segments is hit.
package fault

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/relay"
)

// Direction says what happens to the frames of one direction. Rates are
// probabilities, from 0 to 1, for each frame.
type Direction struct {
	Loss      float64
	Duplicate float64 // the copy follows the frame
	Corrupt   float64 // one bit behind the link-layer header
	// Reorder holds a frame back until a few later ones, at most ReorderDistance,
	// have overtaken it; or for ReorderTime if no more come.
	Reorder         float64
	ReorderDistance int           // default 3
	ReorderTime     time.Duration // default 10 ms
	// Delay holds up every frame, and Jitter by up to as much more. Frames stay in
	// order: see Reorder.
	Delay, Jitter time.Duration
}

// none reports whether d leaves frames as they are.
func (d *Direction) none() bool {
	return d.Loss <= 0 && d.Duplicate <= 0 && d.Corrupt <= 0 && d.Reorder <= 0 && d.Delay <= 0 && d.Jitter <= 0
}

// Config describes the faults.
type Config struct {
	Seed       uint64
	Send, Recv Direction
	// Limit is how many bytes of buffers each direction of a queue holds; when they
	// are full, the sender has to wait. Default 16 MiB.
	Limit int
}

// Counts are the faults so far.
type Counts struct {
	Frames     uint64 // that came, before anything happened to them
	Lost       uint64
	Duplicated uint64
	Corrupted  uint64
	Reordered  uint64 // overtaken by at least one frame
}

// Device is a device with faults.
type Device struct {
	*relay.Device
	send, recv counters
}

// New wraps d, and closes it when it is closed itself.
func New(d link.Device, c Config) *Device {
	if c.Limit <= 0 {
		c.Limit = 16 << 20
	}
	medium := d.Info().Medium
	f := &Device{}
	maker := func(d Direction, counts *counters, way uint64) func(i int) relay.Machine {
		return func(i int) relay.Machine {
			if d.none() {
				return nil
			}
			return newMachine(d, medium, c.Limit, rand.NewPCG(c.Seed, uint64(i)<<1|way), counts)
		}
	}
	f.Device = relay.New(d, maker(c.Send, &f.send, 0), maker(c.Recv, &f.recv, 1))
	return f
}

// Counts returns the faults of each direction, of all queues together. A
// direction without faults counts nothing.
func (f *Device) Counts() (send, recv Counts) { return f.send.read(), f.recv.read() }

// counters are Counts that every queue adds to.
type counters struct {
	frames, lost, duplicated, corrupted, reordered atomic.Uint64
}

func (c *counters) read() Counts {
	return Counts{
		Frames: c.frames.Load(), Lost: c.lost.Load(), Duplicated: c.duplicated.Load(),
		Corrupted: c.corrupted.Load(), Reordered: c.reordered.Load(),
	}
}
