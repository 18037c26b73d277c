//go:build !race

package ring

import "testing"

// The test is not built for the race detector, under which sync.Pool drops entries on purpose.

func TestStreamInItsStrideAllocatesNothing(t *testing.T) {
	var s Send
	var r Receive
	s.SetLimit(1 << 20)
	frame := &lender{}
	p := stream(0, 200000) // more bytes than the inline table of chunks covers
	turn := func() {
		off := s.End()
		s.Write(p)
		s.ReadAt(p, off)
		s.Release(s.End())
		at := r.Consumed()
		r.WriteAt(p[:100000], at+100000)
		r.WriteAt(p[:100000], at)
		r.Commit(at + 200000)
		r.Read(p)
		if !r.Lend(p, at+200000, frame) {
			t.Error("a loan is refused")
		}
		r.Commit(at + 400000)
		r.Read(p)
	}
	if n := testing.AllocsPerRun(50, turn); n != 0 {
		t.Errorf("%v allocations a turn, want none", n)
	}
}
