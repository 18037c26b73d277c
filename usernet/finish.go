package usernet

import (
	"time"

	"loam/stack"
)

// A guest that has ended leaves streams behind: it has sent them to their end,
// the gateway has acknowledged them, and has not handed all of them to the host
// yet. On Linux the kernel would still do that for a program that has exited.

// finishPoll is how often Finish looks.
const finishPoll = time.Millisecond

// Finish waits until the streams that the guest has ended have been handed to
// the host, or until the time is up. It is for a guest that has gone; Close
// follows.
func (g *Gateway) Finish(timeout time.Duration) {
	for deadline := time.Now().Add(timeout); g.owes() && time.Now().Before(deadline); {
		time.Sleep(finishPoll)
	}
}

// owes reports whether a relay has something of the guest's for the host.
func (g *Gateway) owes() bool {
	owes := false
	g.relays.Range(func(key, _ any) bool {
		r := key.(*relay)
		owes = !r.handedOver.Load() && !r.aborted.Load() && r.guest.Events()&stack.ReadHangup != 0
		return !owes
	})
	return owes
}
