package ring

import (
	"testing"
	"time"
)

func TestStamps(t *testing.T) {
	var s Stamps
	if _, ok := s.Before(1, 0); ok {
		t.Error("a time of an empty list")
	}
	for i := range 3 {
		s.Note(uint64(10*i+10), time.Duration(i))
	}
	s.Note(30, 9) // has arrived before
	for _, test := range []struct {
		end, consumed uint64
		want          time.Duration
		ok            bool
	}{{1, 0, 0, true}, {10, 0, 0, true}, {11, 0, 1, true}, {30, 5, 2, true}, {31, 5, 0, false}, {25, 25, 2, true}, {5, 25, 2, true}} {
		if at, ok := s.Before(test.end, test.consumed); at != test.want || ok != test.ok {
			t.Errorf("before %d with %d consumed: %v, %v", test.end, test.consumed, at, ok)
		}
	}
}

// If the list is full, neighbours are merged, and no byte seems to have arrived earlier than it did.
func TestStampsMerge(t *testing.T) {
	var s Stamps
	const n = 10 * maxStamps
	for i := range n {
		s.Note(uint64(i+1), time.Duration(i))
	}
	if len(s.list) > maxStamps {
		t.Errorf("%d times are kept", len(s.list))
	}
	for i := range n {
		if at, ok := s.Before(uint64(i+1), 0); !ok || at < time.Duration(i) {
			t.Fatalf("byte %d arrived at %v, %v", i, at, ok)
		}
	}
}
