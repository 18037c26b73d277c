// Package queue has the queues of the stack: messages that wait for a program, and lists of work that are reused.
package queue

// FIFO is a first-in, first-out queue in one slice. Push and Pop take amortized constant
// time. The zero value is an empty queue.
type FIFO[T any] struct {
	items []T
	head  int // index of the oldest item
}

// Len returns the number of items.
func (q *FIFO[T]) Len() int { return len(q.items) - q.head }

// Push appends an item.
func (q *FIFO[T]) Push(x T) { q.items = append(q.items, x) }

// Front returns the oldest item, which stays in the queue. The queue must not be empty,
// and the pointer is valid until the next Push or Pop.
func (q *FIFO[T]) Front() *T { return &q.items[q.head] }

// Pop removes the oldest item and returns it. The queue must not be empty.
func (q *FIFO[T]) Pop() T {
	var zero T
	x := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = Emptied(q.items), 0
	case q.head >= maxKept && q.head > len(q.items)/2: // amortized, each item is moved once
		rest := copy(q.items, q.items[q.head:])
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	return x
}

// maxKept is the capacity up to which the memory of a list is reused.
const maxKept = 1024

// Emptied returns an empty list for reuse, or nil if its capacity exceeds maxKept.
// Elements are cleared so that they can be collected.
func Emptied[T any](list []T) []T {
	if cap(list) > maxKept {
		return nil
	}
	clear(list)
	return list[:0]
}
