package usernet

import (
	"sync"
	"sync/atomic"

	"loam/stack"
)

// Memory of relays. A connection whose reader has stopped fills the rings of the
// gateway's TCP in both directions, and one buffer in each of the relay's goroutines. The
// guest decides how many connections there are, so all connections together have a bound.
// With few connections, each has the largest window. With more, each has an equal share,
// and the windows of connections that hold less than that shrink. Full rings create back
// pressure: TCP windows close, and the data stays in the host's kernel and in the guest.
//
// Data already held when a window shrinks stays until it is read, and counts against the
// bound. While that leaves no share for other connections, they have the smallest window,
// so that every connection makes progress.
//
// Rejected: a pool from which connections take window as needed. The first connections
// would take all of it.

// Sizes of the window of one direction, in bytes.
const (
	largestWindow  = 2 << 20
	smallestWindow = 16 << 10
)

// memory divides the bound among relays.
type memory struct {
	bound int // bytes

	mu     sync.Mutex
	relays map[*relay]struct{} // under mu
	spoilt int                 // number of joins and leaves since the last division; under mu
}

func newMemory(bound int) *memory { return &memory{bound: bound, relays: map[*relay]struct{}{}} }

// window is the limit of a relay's rings. memory writes it and the relay reads it.
type window struct{ bytes atomic.Int32 }

// little reports whether the relay's goroutines use small buffers.
func (w *window) little() bool { return w.bytes.Load() < bufferSize }

// costOf returns the most bytes that a relay with the given window can hold: two rings
// and two buffers.
func costOf(window int) int {
	if window < bufferSize {
		return 2*window + 2*littleBytes
	}
	return 2*window + 2*bufferSize
}

// share returns the window of each of n relays, in bytes.
func (m *memory) share(n int) int {
	w := largestWindow
	for w > smallestWindow && n*costOf(w) > m.bound {
		w /= 2
	}
	return w
}

// next returns the window for a connection that is about to be accepted.
func (m *memory) next() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.share(len(m.relays) + 1)
}

// join adds a relay and sets its window. The windows of other relays may shrink.
func (m *memory) join(r *relay) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.relays[r] = struct{}{}
	r.window.bytes.Store(smallestWindow)
	m.divide(true)
}

// leave removes a relay and releases its window.
func (m *memory) leave(r *relay) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.relays, r)
	m.divide(false)
}

// divide recomputes the windows of all relays. With many relays it does so only after a
// join, or after enough relays have left. The caller holds mu.
func (m *memory) divide(joined bool) {
	n := len(m.relays)
	if m.spoilt++; n > 64 && m.spoilt < n/8 && !joined {
		return
	}
	m.spoilt = 0
	share := m.share(n)
	left := m.bound
	var poorer []*relay
	for r := range m.relays {
		have := int(r.window.bytes.Load())
		if have > share {
			r.setWindow(share)
			have = share
		}
		left -= max(costOf(have), r.held())
		if have < share {
			poorer = append(poorer, r)
		}
	}
	for _, r := range poorer {
		more := costOf(share) - costOf(int(r.window.bytes.Load()))
		if more > left {
			return
		}
		r.setWindow(share)
		left -= more
	}
}

// held returns the bytes waiting in the rings of a relay.
func (r *relay) held() int { return r.guest.Buffered() + r.guest.Unacknowledged() }

// setWindow changes the window. It has no effect on a connection that has ended.
func (r *relay) setWindow(bytes int) {
	r.window.bytes.Store(int32(bytes))
	r.guest.SetOptions(func(o *stack.TCPOptions) { o.ReceiveBuffer, o.SendBuffer = bytes, bytes })
}
