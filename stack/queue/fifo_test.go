package queue

import "testing"

func TestFIFOKeepsOrder(t *testing.T) {
	var q FIFO[int]
	next, want := 0, 0
	for _, run := range []struct{ push, pop int }{{1, 1}, {5000, 10}, {100, 4000}, {3 * maxKept, maxKept}, {0, 2*maxKept + 1090}} {
		for range run.push {
			q.Push(next)
			next++
		}
		for range run.pop {
			if front := *q.Front(); front != want {
				t.Fatalf("the front is %d, want %d", front, want)
			}
			if got := q.Pop(); got != want {
				t.Fatalf("popped %d, want %d", got, want)
			}
			want++
		}
		if q.Len() != next-want {
			t.Fatalf("%d items are left, want %d", q.Len(), next-want)
		}
	}
}
