// Package shape wraps a device and limits its rate, each direction by itself,
// with a bounded queue in front: a link of so many bits a second. What finds the
// queue full is dropped and counted, as at a router.
//
// The rate is kept by a token bucket, computed as a time (the virtual scheduling
// of ITU-T I.371): each frame has an earliest moment to leave, and moves that of
// its successors on by its bits over the rate. A frame that leaves late, for the
// timers of the system are coarse, does not slow down what follows. Bits are
// those of the wire: a GSO frame counts its headers once for each segment, and
// leaves as one.
package shape

import (
	"time"

	"loam/link"
	"loam/link/relay"
)

// Limit is the rate of a direction. The zero value is no limit.
type Limit struct {
	Rate  int64 // bits a second
	Burst int   // bytes that may leave at once after a pause, default 64 kB, at most 1 GB
	// Queue is how many bytes wait, at least one frame. Default: QueueTime's worth.
	Queue     int
	QueueTime time.Duration // default 100 ms
}

// Config describes both directions.
type Config struct {
	Send, Recv Limit
}

// New wraps d, and closes it when it is closed itself. What is dropped is in the
// device's Stats as TxDropped and RxDropped.
func New(d link.Device, c Config) *relay.Device {
	return relay.New(d, maker(c.Send), maker(c.Recv))
}

func maker(l Limit) func(i int) relay.Machine {
	return func(int) relay.Machine {
		if l.Rate <= 0 {
			return nil
		}
		return newMachine(l)
	}
}
