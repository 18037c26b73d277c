package queue

import (
	"sync"
	"sync/atomic"
)

// Charged is a queue of values that are charged for their size in bytes. The zero value is empty. Its methods may be called
// concurrently.
type Charged[T any] struct {
	mu    sync.Mutex
	items []charged[T]
	size  int         // sum of the sizes of items
	some  atomic.Bool // whether items is not empty; read at every poll
}

type charged[T any] struct {
	value T
	size  int
}

// Put appends x if the queue then has at most limit bytes. Otherwise x is dropped.
func (q *Charged[T]) Put(x T, size, limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size+size <= limit {
		q.items, q.size = append(q.items, charged[T]{x, size}), q.size+size
		q.some.Store(true)
	}
}

// Take removes and returns the oldest value. next is a copy of the value that is the oldest afterwards, or nil.
func (q *Charged[T]) Take() (x T, next *T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return x, nil, false
	}
	first := q.items[0]
	q.items[0] = charged[T]{}
	if q.items = q.items[1:]; len(q.items) > 0 {
		second := q.items[0].value
		next = &second
	} else {
		q.items = nil
		q.some.Store(false)
	}
	q.size -= first.size
	return first.value, next, true
}

// Any reports whether the queue is not empty.
func (q *Charged[T]) Any() bool { return q.some.Load() }

// Clear removes all values.
func (q *Charged[T]) Clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.size = nil, 0
	q.some.Store(false)
}
