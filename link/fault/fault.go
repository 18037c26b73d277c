// Package fault wraps a device and damages the frames that pass it. Each direction has its own
// rates for loss, duplication, corruption, delay and reordering. The same seed does the same to the
// same sequence of frames, regardless of timing.
//
// Every fault is counted, and no frame is lost without being counted. If the device is too slow, or
// more than Limit bytes are delayed, the sender has to wait.
//
// A frame is a frame of the device. With segmentation offload it is up to 64 kB, which are lost or
// delayed as a whole; to lose single segments, wrap a device without offloads. A frame is finished
// before it is corrupted, as hardware would do, so that the receiver can detect the damage: its
// checksum is computed, or, for a GSO frame, it is cut into segments and one segment is corrupted.
package fault

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/relay"
)

// Direction describes the faults of one direction. Rates are probabilities per frame, from 0 to 1.
type Direction struct {
	Loss      float64
	Duplicate float64 // probability that a frame is followed by a copy
	Corrupt   float64 // probability that one bit after the link-layer header is flipped
	// Reorder delays a frame until a few later frames, at most ReorderDistance, have overtaken it,
	// or until ReorderTime has passed.
	Reorder         float64
	ReorderDistance int           // greatest number of frames that overtake; 0: 3
	ReorderTime     time.Duration // longest delay; 0: 10 ms
	// Delay is added to every frame, and up to Jitter more. Frames stay in order; to change the
	// order use Reorder.
	Delay, Jitter time.Duration
}

// none reports whether d has no faults.
func (d *Direction) none() bool {
	return d.Loss <= 0 && d.Duplicate <= 0 && d.Corrupt <= 0 && d.Reorder <= 0 && d.Delay <= 0 && d.Jitter <= 0
}

// Config describes the faults of a device.
type Config struct {
	Seed       uint64
	Send, Recv Direction
	// Limit is the size of the buffers in bytes that each direction of a queue holds. If it is
	// reached, the sender has to wait. Default 16 MiB.
	Limit int
}

// Counts counts the faults of one direction.
type Counts struct {
	Frames     uint64 // number of frames before any fault
	Lost       uint64
	Duplicated uint64
	Corrupted  uint64
	Reordered  uint64 // number of frames that at least one later frame has overtaken
}

// Device is a device that damages frames.
type Device struct {
	*relay.Device
	send, recv counters
}

// New wraps d. Closing the returned device also closes d.
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

// Counts returns the faults of each direction, summed over all queues. A direction without faults
// counts nothing.
func (f *Device) Counts() (send, recv Counts) { return f.send.read(), f.recv.read() }

// counters are Counts to which every queue adds.
type counters struct {
	frames, lost, duplicated, corrupted, reordered atomic.Uint64
}

func (c *counters) read() Counts {
	return Counts{
		Frames: c.frames.Load(), Lost: c.lost.Load(), Duplicated: c.duplicated.Load(),
		Corrupted: c.corrupted.Load(), Reordered: c.reordered.Load(),
	}
}
