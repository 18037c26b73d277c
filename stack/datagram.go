package stack

import (
	"net/netip"
	"sync"
	"time"

	"loam/link"
	"loam/stack/tcp"
)

// Datagram describes a received datagram.
type Datagram struct {
	From, To  netip.AddrPort // To is the destination address of the packet
	Len       int            // payload length, possibly more than was copied to the buffer
	Interface int            // index of the interface on which the datagram arrived
	TTL, TOS  uint8
	at        tcp.Time // arrival time: see Stack.Arrived
}

// Arrived returns when a datagram arrived, by the current wall clock.
func (s *Stack) Arrived(d *Datagram) time.Time { return time.Now().Add(d.at - s.now()) }

// datagram returns the description of a datagram of n bytes in a packet that arrived at
// now.
func (p *packet) datagram(now tcp.Time, from, to netip.AddrPort, n int) Datagram {
	return Datagram{From: from, To: to, Len: n, Interface: p.ifc.index, TTL: p.ttl, TOS: p.tos, at: now}
}

// messageQueue is the receive buffer of a socket that preserves message boundaries. Each
// message has additional information of type T. Shards put, programs take. A message that
// does not fit is dropped, and the putter counts it. The queue holds the frames
// themselves, and its size is their memory, not just their payload.
type messageQueue[T any] struct {
	mu     sync.Mutex
	items  []queued[T] // messages, valid from index head on
	head   int
	size   int // bytes of the frame buffers in the queue
	limit  int
	closed bool
}

type queued[T any] struct {
	frame *link.Frame // frame whose bytes are the payload of the message
	info  T
}

// datagramQueue is the receive buffer of a datagram socket.
type datagramQueue = messageQueue[Datagram]

// defaultDatagramBuffer is the default size of a datagram socket's receive buffer, in
// bytes of frame buffers: about a thousand small datagrams, or 30 of the largest.
const defaultDatagramBuffer = 2 << 20

// put appends a frame and takes ownership of it. It returns false, and leaves the frame
// to the caller, if the queue is full or closed.
func (q *messageQueue[T]) put(f *link.Frame, info T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := f.Cap()
	if q.closed || q.size+size > q.limit && q.size > 0 {
		return false
	}
	q.size += size
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		rest := copy(q.items, q.items[q.head:]) // so that a queue that never drains does not grow
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	q.items = append(q.items, queued[T]{f, info})
	return true
}

// take copies the oldest message to p, removes it and frees its frame.
func (q *messageQueue[T]) take(p []byte) (n int, info T, ok bool) { return q.takeFrom(0, p) }

// takeFrom is take without the first skip bytes of the message.
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

// peek copies the oldest message to p without removing it.
func (q *messageQueue[T]) peek(p []byte) (n int, info T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return 0, info, false
	}
	item := &q.items[q.head]
	return copy(p, item.frame.Bytes()), item.info, true
}

// len returns the number of messages and the size of the oldest in bytes.
func (q *messageQueue[T]) len() (count, first int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count = len(q.items) - q.head
	if count > 0 {
		first = q.items[q.head].frame.Len()
	}
	return count, first
}

// close frees all messages and rejects new ones.
func (q *messageQueue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for i := q.head; i < len(q.items); i++ {
		q.items[i].frame.Free()
	}
	q.items, q.head, q.size = nil, 0, 0
}
