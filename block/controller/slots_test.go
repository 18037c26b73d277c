package controller

import (
	"errors"
	"testing"
	"time"

	"loam/block"
)

// startAll starts as many steps (commands for the hardware) as there are free slots.
func startAll(s *Slots, now time.Time) (steps []Step) {
	for {
		step, ok := s.Next(now)
		if !ok {
			return steps
		}
		steps = append(steps, step)
	}
}

func request(op block.Op, flags block.Flags) *block.Request {
	return &block.Request{Op: op, Flags: flags, Length: 512, Data: [][]byte{make([]byte, 512)}, To: block.NewCompletions()}
}

// Requests wait while all slots are busy, and are started in order.
func TestOrder(t *testing.T) {
	s := NewSlots(2, Rules{})
	rs := []*block.Request{request(block.Read, 0), request(block.Write, 0), request(block.Read, 0)}
	for _, r := range rs {
		s.Add(r)
	}
	steps := startAll(s, time.Time{})
	if len(steps) != 2 || steps[0].Request != rs[0] || steps[1].Request != rs[1] || s.Held() != 2 {
		t.Fatalf("started %+v", steps)
	}
	if s.Busy(-1) || s.Busy(2) || !s.Busy(steps[0].Slot) {
		t.Error("slots are busy that are not there, or not busy")
	}
	if r := s.Done(steps[0].Slot, nil); r != rs[0] || s.Busy(steps[0].Slot) {
		t.Errorf("Done returned %v", r)
	}
	if steps = startAll(s, time.Time{}); len(steps) != 1 || steps[0].Request != rs[2] {
		t.Errorf("then started %+v", steps)
	}
}

// Without FUA in hardware, a write with FUA is carried out as a write and a flush. No flush follows a failed write.
// If the flush fails, its error is the result of the request.
func TestFUA(t *testing.T) {
	s := NewSlots(1, Rules{Flush: true})
	r := request(block.Write, block.FUA)
	s.Add(r)
	step, _ := s.Next(time.Time{})
	if step.Op != block.Write || step.FUA || s.Done(step.Slot, nil) != nil {
		t.Fatalf("first step %+v, or no second", step)
	}
	step, ok := s.Next(time.Time{})
	if !ok || step.Op != block.Flush || step.FUA || s.Done(step.Slot, block.ErrIO) != r {
		t.Errorf("second step %+v", step)
	}
	s.Add(r)
	step, _ = s.Next(time.Time{})
	if s.Done(step.Slot, block.ErrIO) != r {
		t.Error("a write that failed is followed by a flush")
	}
	s = NewSlots(1, Rules{Flush: true, FUA: true})
	s.Add(r)
	if step, _ = s.Next(time.Time{}); !step.FUA || s.Done(step.Slot, nil) != r {
		t.Errorf("with the flag in hardware: %+v", step)
	}
}

// A request that must run alone waits until the running requests have ended, and later requests wait until it has ended.
func TestAlone(t *testing.T) {
	s := NewSlots(4, Rules{Flush: true, Alone: [block.Ops]bool{block.Flush: true}})
	for _, op := range []block.Op{block.Read, block.Read, block.Flush, block.Read} {
		s.Add(request(op, 0))
	}
	first := startAll(s, time.Time{})
	if len(first) != 2 {
		t.Fatalf("%d steps started beside a flush", len(first))
	}
	s.Done(first[0].Slot, nil)
	if _, ok := s.Next(time.Time{}); ok {
		t.Error("a flush is not alone")
	}
	s.Done(first[1].Slot, nil)
	flush := startAll(s, time.Time{})
	if len(flush) != 1 || flush[0].Op != block.Flush {
		t.Fatalf("started %+v, want the flush alone", flush)
	}
	s.Done(flush[0].Slot, nil)
	if last := startAll(s, time.Time{}); len(last) != 1 || last[0].Op != block.Read {
		t.Errorf("then started %+v", last)
	}
}

// Oldest returns the step that was started first. Drain returns every request that has not completed, each once.
func TestDrain(t *testing.T) {
	s := NewSlots(2, Rules{Flush: true})
	start := time.Unix(100, 0)
	all := map[*block.Request]bool{}
	for _, r := range []*block.Request{request(block.Write, block.FUA), request(block.Read, 0), request(block.Flush, 0)} {
		s.Add(r)
		all[r] = true
	}
	step, _ := s.Next(start)
	s.Next(start.Add(time.Second))
	if at, ok := s.Oldest(); !ok || !at.Equal(start) {
		t.Errorf("oldest is %v", at)
	}
	s.Done(step.Slot, nil) // the write waits for its flush
	if at, ok := s.Oldest(); !ok || !at.Equal(start.Add(time.Second)) {
		t.Errorf("oldest is %v", at)
	}
	for r, _, _ := s.Drain(); r != nil; r, _, _ = s.Drain() {
		if !all[r] {
			t.Error("a request is returned twice")
		}
		delete(all, r)
	}
	if len(all) != 0 || s.Held() != 0 {
		t.Errorf("%d requests are lost, %d steps held", len(all), s.Held())
	}
}

func TestFinal(t *testing.T) {
	if block.Final(block.ErrIO) || !block.Final(errors.Join(block.ErrTimeout)) {
		t.Error("final errors are not told from others")
	}
}
