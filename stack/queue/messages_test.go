package queue

import (
	"testing"

	"loam/link"
)

// A queue that is never empty does not grow with the number of messages that pass
// through it.
func TestMessagesMemory(t *testing.T) {
	var q Messages[int]
	q.SetLimit(1 << 20)
	defer q.Close()
	for i := range 100_000 {
		if !q.Put(link.NewFrame(1), i) {
			t.Fatal("no room")
		}
		if i < 50 {
			continue
		}
		if _, info, ok := q.Take(nil); !ok || info != i-50 {
			t.Fatalf("took message %d, %v; want %d", info, ok, i-50)
		}
	}
	if n := cap(q.items); n > 300 {
		t.Errorf("50 messages are kept in %d places", n)
	}
}
