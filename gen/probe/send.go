package probe

import (
	"fmt"
	"time"

	"loam/gen/method"
)

// flushTimeout is how long a sender waits for frames to leave before it goes on:
// what has not left by then is asked again in a later pass, if there is one.
const flushTimeout = 100 * time.Millisecond

// runSender writes probes and hands them over. What a method keeps back to make
// up a batch is flushed when there is no more work waiting. After an error it
// goes on taking work, and does nothing with it, until the scheduler has heard.
func (r *run) runSender(tx method.Sender) {
	var b *batch
	next, now, failed := 0, int64(0), false
	fill := func(slot []byte) int {
		if next == b.n {
			return 0
		}
		q := r.space.at(b.positions[next])
		next++
		return r.form.put(slot, q, now)
	}
	take := func() bool {
		var ok bool
		select {
		case b, ok = <-r.work:
		default:
			if !failed {
				tx.Flush(flushTimeout) // a timeout means that the link is slow: see flushTimeout
			}
			b, ok = <-r.work
		}
		return ok
	}
	for take() {
		for next = 0; next < b.n && !failed; {
			now = r.now()
			n, err := tx.Send(b.n-next, fill)
			r.sent.Add(uint64(n))
			if err != nil {
				failed = true
				r.cancel(fmt.Errorf("probe: sending: %w", err))
			}
		}
		r.free <- b
	}
}
