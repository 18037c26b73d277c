// Package shape wraps a device and limits its rate to a number of bits per second, separately for
// each direction, with a bounded queue. A frame that finds the queue full is dropped and counted,
// as in a router.
//
// The rate is enforced by a token bucket, computed as a time (the virtual scheduling algorithm of
// ITU-T I.371). Each frame has an earliest time to leave, and moves the time of its successors by
// its bits divided by the rate. A frame that leaves late, because system timers are coarse, does
// not slow down later frames. Bits are counted as on the wire: a GSO frame counts its headers once
// for each segment, and leaves as a whole.
package shape

import (
	"time"

	"loam/link"
	"loam/link/relay"
)

// Limit is the rate of one direction. The zero value means no limit.
type Limit struct {
	Rate  int64 // bits per second
	Burst int   // bytes that may leave at once after a pause; default 64 kB, at most 1 GB
	// Queue is the capacity of the queue in bytes; one frame always fits. Default: the bytes of
	// QueueTime at Rate.
	Queue     int
	QueueTime time.Duration // default 100 ms
}

// Config describes both directions.
type Config struct {
	Send, Recv Limit
}

// New wraps d. Closing the returned device also closes d. Dropped frames are counted in its Stats
// as TxDropped and RxDropped.
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
