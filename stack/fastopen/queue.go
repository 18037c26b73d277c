package fastopen

import (
	"sync"
	"time"
)

// resetTime is how long a request that was reset counts as pending. This limits an attacker who sends SYNs with stolen cookies from
// forged addresses, because the owners of the addresses reset the connections (RFC 7413 section 5.1).
const resetTime = 60 * time.Second

// Queue limits the connections of a listener that Fast Open has opened and whose handshake is not complete. Times are times
// of the stack's clock. Its methods are safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	pending int
	resets  []time.Duration // when requests that were reset cease to count, oldest first; they are included in pending
}

// Enter adds a request, unless most are pending.
func (q *Queue) Enter(now time.Duration, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.pending >= most && len(q.resets) > 0 && q.resets[0] <= now {
		q.resets = q.resets[1:]
		q.pending--
	}
	if q.pending >= most {
		return false
	}
	q.pending++
	return true
}

// Leave removes a request. If the peer has reset the connection before the end of the handshake, the request counts for
// another minute.
func (q *Queue) Leave(now time.Duration, wasReset bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wasReset {
		q.resets = append(q.resets, now+resetTime)
		return
	}
	q.pending--
}
