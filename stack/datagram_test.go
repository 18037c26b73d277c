package stack

import (
	"testing"

	"loam/link"
)

// A queue that is never empty does not grow with the number of datagrams that pass
// through it.
func TestDatagramQueueMemory(t *testing.T) {
	q := datagramQueue{limit: 1 << 20}
	defer q.close()
	for i := range 100_000 {
		if !q.put(link.NewFrame(1), Datagram{Len: i}) {
			t.Fatal("no room")
		}
		if i < 50 {
			continue
		}
		if _, info, ok := q.take(nil); !ok || info.Len != i-50 {
			t.Fatalf("took datagram %d, %v; want %d", info.Len, ok, i-50)
		}
	}
	if n := cap(q.items); n > 300 {
		t.Errorf("50 datagrams are kept in %d places", n)
	}
}
