package usernet

import (
	"time"

	"loam/stack"
)

// When a guest ends, the gateway may still hold data that it has acknowledged to the guest but not yet written to the
// host's socket. On Linux, the kernel would still send such data after the program has exited. Finish waits until the
// gateway has done so too.

// finishPoll is the interval at which Finish checks.
const finishPoll = time.Millisecond

// Finish waits until all streams that the guest has closed are written to the host's sockets, for at most timeout. It
// is called after the guest has ended and before Close.
func (g *Gateway) Finish(timeout time.Duration) {
	for deadline := time.Now().Add(timeout); g.hasPendingStreams() && time.Now().Before(deadline); {
		time.Sleep(finishPoll)
	}
}

// hasPendingStreams reports whether a relay still holds data of a stream that the guest has ended.
func (g *Gateway) hasPendingStreams() bool {
	pending := false
	g.relays.Range(func(key, _ any) bool {
		r := key.(*relay)
		pending = !r.handedOver.Load() && !r.aborted.Load() && r.guest.Events()&stack.ReadHangup != 0
		return !pending
	})
	return pending
}
