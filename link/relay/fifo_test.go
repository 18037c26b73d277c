package relay

import "testing"

// A FIFO preserves the order, and its memory does not grow with the number of items that have
// passed.
func TestFIFO(t *testing.T) {
	var q FIFO[int]
	next, want := 0, 0
	for step := range 10_000 {
		for range step % 7 {
			q.Push(next)
			next++
		}
		for range min(q.Len(), 4-step%2) {
			if *q.Front() != want {
				t.Fatalf("front is %d, want %d", *q.Front(), want)
			}
			if got := q.Pop(); got != want {
				t.Fatalf("popped %d, want %d", got, want)
			}
			want++
		}
	}
	if q.Len() != next-want {
		t.Errorf("Len = %d, want %d", q.Len(), next-want)
	}
	for q.Len() > 0 {
		q.Pop()
	}
	if cap(q.items) > 64 {
		t.Errorf("room for %d after never more than a few", cap(q.items))
	}
}
