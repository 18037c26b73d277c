package relay

// FIFO is a queue that reuses its memory, for a Machine whose frames leave in order of arrival. The zero value is
// empty.
type FIFO[T any] struct {
	items []T
	head  int // index of the first item; the items before it have been removed
}

// Len returns the number of items.
func (q *FIFO[T]) Len() int { return len(q.items) - q.head }

// Front returns the first item, which must exist.
func (q *FIFO[T]) Front() *T { return &q.items[q.head] }

// Push appends v.
func (q *FIFO[T]) Push(v T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// Pop removes and returns the first item, which must exist.
func (q *FIFO[T]) Pop() T {
	v := q.items[q.head]
	var zero T
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}
