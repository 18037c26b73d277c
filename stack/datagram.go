package stack

import (
	"net/netip"
	"sync"
	"time"

	"loam/link"
	"loam/stack/tcp"
)

// Datagram says what came with a datagram that was received.
type Datagram struct {
	From, To  netip.AddrPort // To is the address that the sender used
	Len       int            // of the payload, which may be more than fitted into the buffer
	Interface int            // index
	TTL, TOS  uint8
	at        tcp.Time // see Stack.Arrived
}

// Arrived is when a datagram arrived, by the clock as it goes now.
func (s *Stack) Arrived(d *Datagram) time.Time { return time.Now().Add(d.at - s.now()) }

// datagram is what is said of one of n bytes in a packet that arrives now.
func (p *packet) datagram(now tcp.Time, from, to netip.AddrPort, n int) Datagram {
	return Datagram{From: from, To: to, Len: n, Interface: p.ifc.index, TTL: p.ttl, TOS: p.tos, at: now}
}

// messageQueue is the receive buffer of a socket that keeps message
// boundaries, with what there is to say of each. Shards put, programs take; what does
// not fit is dropped and counted by who puts. It holds the frames themselves and counts
// the memory that these take, not just their payload.
type messageQueue[T any] struct {
	mu     sync.Mutex
	items  []queued[T] // from head on
	head   int
	size   int // bytes of buffers held
	limit  int
	closed bool
}

type queued[T any] struct {
	frame *link.Frame // its bytes are the payload
	info  T
}

// datagramQueue is that of a socket for datagrams.
type datagramQueue = messageQueue[Datagram]

// defaultDatagramBuffer is the receive buffer of a datagram socket, in bytes of
// buffers: about a thousand small datagrams, or 30 of the largest.
const defaultDatagramBuffer = 2 << 20

// put takes the frame if it has room.
func (q *messageQueue[T]) put(f *link.Frame, info T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := f.Cap()
	if q.closed || q.size+size > q.limit && q.size > 0 {
		return false
	}
	q.size += size
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		rest := copy(q.items, q.items[q.head:]) // a queue that never drains does not grow
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	q.items = append(q.items, queued[T]{f, info})
	return true
}

// take moves the oldest datagram into p.
func (q *messageQueue[T]) take(p []byte) (n int, info T, ok bool) { return q.takeFrom(0, p) }

// takeFrom is take for who does not want its first skip bytes.
func (q *messageQueue[T]) takeFrom(skip int, p []byte) (n int, info T, ok bool) {
	q.mu.Lock()
	if q.head == len(q.items) {
		q.mu.Unlock()
		return 0, info, false
	}
	item := q.items[q.head]
	q.items[q.head] = queued[T]{}
	q.head++
	q.size -= item.frame.Cap()
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	q.mu.Unlock()
	b := item.frame.Bytes()
	n = copy(p, b[min(skip, len(b)):])
	item.frame.Free()
	return n, item.info, true
}

// peek copies the oldest datagram into p and leaves it.
func (q *messageQueue[T]) peek(p []byte) (n int, info T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return 0, info, false
	}
	item := &q.items[q.head]
	return copy(p, item.frame.Bytes()), item.info, true
}

// len is how many datagrams there are, and the size of the oldest.
func (q *messageQueue[T]) len() (count, first int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count = len(q.items) - q.head
	if count > 0 {
		first = q.items[q.head].frame.Len()
	}
	return count, first
}

// close frees what is there and refuses more.
func (q *messageQueue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for i := q.head; i < len(q.items); i++ {
		q.items[i].frame.Free()
	}
	q.items, q.head, q.size = nil, 0, 0
}
