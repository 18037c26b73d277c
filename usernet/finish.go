package usernet

import (
	"time"

	"loam/stack"
)

// When a guest ends, the gateway may hold data that the guest has sent and the gateway
// has acknowledged, but that is not yet in the host's socket. On Linux, the kernel would
// still send such data for a program that has exited. Finish gives the gateway time to do
// the same.

// finishPoll is the interval at which Finish checks.
const finishPoll = time.Millisecond

// Finish waits until the streams that the guest has ended are written to the host's
// sockets, but at most for timeout. It is called after the guest has ended and before
// Close.
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
