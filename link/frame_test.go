package link_test

import (
	"testing"

	"loam/link"
)

// Only frames made since Track are counted, not frames that an earlier test allocated and frees later.
func TestOutstandingCountsFromTrack(t *testing.T) {
	defer link.Track(false)
	before := link.NewFrame(10)
	link.Track(true)
	earlier := link.NewFrame(10)
	link.Track(true)
	mine := link.NewFrame(10)
	before.Free()
	earlier.Free()
	if n := link.Outstanding(); n != 1 {
		t.Errorf("%d frames are outstanding, want 1", n)
	}
	mine.Free()
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are outstanding, want 0", n)
	}
}

// A frame is freed while frames are counted (link.Track), and allocated again while they are not counted. The next
// Free of this frame must not be reported as a double free.
func TestFreedBeforeIsNotFreedTwice(t *testing.T) {
	defer link.Track(false)
	for range 100 { // repeated until the pool returns the same frame, at most 100 times
		link.Track(true)
		link.NewFrame(10).Free()
		link.Track(false)
		f := link.NewFrame(10)
		link.Track(true)
		f.Free()
	}
}

func TestFreedTwice(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	defer func() {
		if recover() == nil {
			t.Error("a frame can be freed twice")
		}
	}()
	f := link.NewFrame(10)
	f.Free()
	f.Free()
}
