package boot

import "testing"

// The decoder of control messages decodes a time correctly, also if signals are sent in between, and also several
// times in succession.
func TestTime(t *testing.T) {
	var r TimeReader
	for _, want := range []int64{0, 1, 127, 128, 1_795_305_600_123_456_789, 1<<63 - 1, -1} {
		var got int64
		sent := AppendTime(nil, want)
		for i, b := range sent {
			if _, ok := r.Take(15); ok {
				t.Fatal("a signal is a time")
			}
			var ok bool
			if got, ok = r.Take(b); ok != (i == len(sent)-1) {
				t.Fatalf("%d: byte %d of %d is the last: %v", want, i, len(sent), ok)
			}
		}
		if got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
