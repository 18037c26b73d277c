package stack

// fifo is a first-in, first-out queue in one slice. push and pop take amortized constant
// time. The zero value is an empty queue.
type fifo[T any] struct {
	items []T
	head  int // index of the oldest item in items
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(x T) { q.items = append(q.items, x) }

// front returns the oldest item, which stays in the queue. The queue must not be empty,
// and the pointer is valid until the next push or pop.
func (q *fifo[T]) front() *T { return &q.items[q.head] }

// pop removes the oldest item and returns it. The queue must not be empty.
func (q *fifo[T]) pop() T {
	var zero T
	x := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = emptied(q.items), 0
	case q.head >= maxKept && q.head > len(q.items)/2: // each item is moved at most once on average
		rest := copy(q.items, q.items[q.head:])
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	return x
}
