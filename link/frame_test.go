package link_test

import (
	"testing"

	"loam/link"
)

// The count of frames is of those made since it began: what an earlier test still
// holds, and frees later, is none of its business.
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

// A frame that was freed while frames were counted, and made again while they were
// not, is freed but once.
func TestFreedBeforeIsNotFreedTwice(t *testing.T) {
	defer link.Track(false)
	for range 100 { // until a frame comes back from the pool
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
