package usernet

import (
	"sync"
	"sync/atomic"

	"loam/stack"
)

// The memory of relays. A connection whose receiver has stopped reading fills the buffers of the gateway's TCP in both
// directions, and one buffer in each goroutine of its relay. The guest decides how many connections exist, so a bound
// applies to the sum of all connections. With few connections, each gets the largest window. With more, each gets an
// equal share of the bound. When a TCP buffer is full, the TCP window closes, and the data stays in the host's kernel
// or in the guest.
//
// When a window shrinks, data that the connection already holds stays until it is read, and counts against the bound.
// If this leaves no share for the other connections, they get the smallest window, so that every connection makes
// progress.
//
// Rejected: a common pool from which connections take memory as needed. The first connections would take all of it.

// Sizes of the window of one direction, in bytes.
const (
	largestWindow  = 2 << 20
	smallestWindow = 16 << 10
)

// memory divides a bound on memory among the relays.
type memory struct {
	bound int // maximum number of bytes that all relays together may hold

	mu     sync.Mutex
	relays map[*relay]struct{} // the relays that share the bound; guarded by mu
	spoilt int                 // number of calls of join and leave since the last call of divide; guarded by mu
}

func newMemory(bound int) *memory { return &memory{bound: bound, relays: map[*relay]struct{}{}} }

// window is the limit of each TCP buffer of a relay. memory writes it and the relay reads it.
type window struct{ bytes atomic.Int32 }

// little reports whether the relay's goroutines use small buffers.
func (w *window) little() bool { return w.bytes.Load() < bufferSize }

// costOf returns the maximum number of bytes that a relay with the given window can hold: two TCP buffers and two read
// buffers.
func costOf(window int) int {
	if window < bufferSize {
		return 2*window + 2*littleBytes
	}
	return 2*window + 2*bufferSize
}

// share returns the window that each of n relays gets, in bytes.
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

// join adds a relay, which carries one connection, and sets its window. The windows of other relays may shrink.
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

// held returns the number of bytes in the TCP buffers of a relay's connection to the guest.
func (r *relay) held() int { return r.guest.Buffered() + r.guest.Unacknowledged() }

// setWindow changes the window. It has no effect on a connection that has ended.
func (r *relay) setWindow(bytes int) {
	r.window.bytes.Store(int32(bytes))
	r.guest.SetOptions(func(o *stack.TCPOptions) { o.ReceiveBuffer, o.SendBuffer = bytes, bytes })
}
