package queue

import (
	"sync"

	"loam/link"
)

// Messages is the receive buffer of a socket that preserves message boundaries. Each
// message has additional information of type T. One goroutine puts and another takes.
// A message that does not fit is dropped, and the putter counts it. The queue holds the frames
// themselves, and its size is their memory, not just their payload.
type Messages[T any] struct {
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

// SetLimit sets the size of the buffer in bytes. Initially it is 0: then the queue holds one message, because an empty queue
// accepts a message of any size.
func (q *Messages[T]) SetLimit(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = n
}

// Limit returns the size of the buffer in bytes.
func (q *Messages[T]) Limit() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// Put appends a frame and takes ownership of it. It returns false, and leaves the frame
// to the caller, if the queue is full or closed.
func (q *Messages[T]) Put(f *link.Frame, info T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := f.Cap()
	if q.closed || q.size+size > q.limit && q.size > 0 {
		return false
	}
	q.size += size
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		rest := copy(q.items, q.items[q.head:]) // moves the messages to the front, so that a queue that never drains does not grow
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	q.items = append(q.items, queued[T]{f, info})
	return true
}

// Take copies the oldest message to p, removes it and frees its frame.
func (q *Messages[T]) Take(p []byte) (n int, info T, ok bool) { return q.TakeFrom(0, p) }

// TakeFrom is Take without the first skip bytes of the message.
func (q *Messages[T]) TakeFrom(skip int, p []byte) (n int, info T, ok bool) {
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

// Peek copies the oldest message to p without removing it.
func (q *Messages[T]) Peek(p []byte) (n int, info T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return 0, info, false
	}
	item := &q.items[q.head]
	return copy(p, item.frame.Bytes()), item.info, true
}

// Len returns the number of messages and the size of the oldest in bytes.
func (q *Messages[T]) Len() (count, first int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count = len(q.items) - q.head
	if count > 0 {
		first = q.items[q.head].frame.Len()
	}
	return count, first
}

// Close frees all messages and rejects new ones.
func (q *Messages[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for i := q.head; i < len(q.items); i++ {
		q.items[i].frame.Free()
	}
	q.items, q.head, q.size = nil, 0, 0
}
