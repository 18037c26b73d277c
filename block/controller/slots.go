package controller

import (
	"time"

	"loam/block"
)

// Slots is the state of one hardware queue: the waiting requests, and those that the hardware is
// processing, each in a numbered slot. It is pure: the time is an argument.
//
// A request takes one or two steps. A write with FUA, on hardware without that flag, is a write
// followed by a flush. Some hardware does certain operations only while it does nothing else (ATA
// commands that are not queued). Such a step waits until all slots are empty. Later requests wait
// for that step, so it does not starve.
type Slots struct {
	rules   Rules
	waiting block.List
	slots   []slot
	free    []int // indices of the free slots, used as a stack
	again   []int // slots waiting for their second step, in order
	held    int   // number of steps that the hardware is processing
	alone   bool  // the hardware is processing a step that runs alone: see Rules.Alone
}

// Rules describes the capabilities of the hardware.
type Rules struct {
	FUA   bool            // a command can carry the FUA flag
	Flush bool            // the hardware has a volatile cache, and a command that flushes it
	Alone [block.Ops]bool // operations that the hardware does only while no other is in progress
}

// slot holds one request.
type slot struct {
	request *block.Request // nil: the slot is free
	op      block.Op       // operation of the current step of the request
	busy    bool           // the hardware is processing the step
	started time.Time      // time when the current step was started
}

// Step is one command for the hardware. A request needs one step, or two if a flush must follow its write.
type Step struct {
	Slot    int
	Op      block.Op // may differ from Request.Op: a flush may follow a write
	FUA     bool
	Request *block.Request
}

// NewSlots returns n empty slots.
func NewSlots(n int, r Rules) *Slots {
	s := &Slots{rules: r, slots: make([]slot, n), again: make([]int, 0, n)}
	for i := range n {
		s.free = append(s.free, n-1-i)
	}
	return s
}

// Add appends a valid request to those that wait for a slot.
func (s *Slots) Add(r *block.Request) { s.waiting.Push(r) }

// Held returns the number of steps that the hardware is processing.
func (s *Slots) Held() int { return s.held }

// Next starts the next step, if the hardware has room for one.
func (s *Slots) Next(now time.Time) (Step, bool) {
	if s.alone {
		return Step{}, false
	}
	if len(s.again) > 0 {
		i := s.again[0]
		if !s.mayStart(block.Flush) {
			return Step{}, false
		}
		s.again = append(s.again[:0], s.again[1:]...)
		return s.start(i, block.Flush, now), true
	}
	r := s.waiting.Front()
	if r == nil || len(s.free) == 0 || !s.mayStart(r.Op) {
		return Step{}, false
	}
	s.waiting.Pop()
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.slots[i].request = r
	return s.start(i, r.Op, now), true
}

func (s *Slots) mayStart(op block.Op) bool { return !s.rules.Alone[op] || s.held == 0 }

func (s *Slots) start(i int, op block.Op, now time.Time) Step {
	at := &s.slots[i]
	at.op, at.busy, at.started = op, true, now
	s.held++
	s.alone = s.rules.Alone[op]
	return Step{Slot: i, Op: op, Request: at.request, FUA: op != block.Flush && s.rules.FUA && at.request.Flags&block.FUA != 0}
}

// Busy reports whether the hardware is processing a step in slot i. Only such a step can complete.
func (s *Slots) Busy(i int) bool { return i >= 0 && i < len(s.slots) && s.slots[i].busy }

// Request returns the request in a busy slot.
func (s *Slots) Request(i int) *block.Request { return s.slots[i].request }

// Done ends the step in a busy slot. It returns the request if that was its last step, and nil if a
// flush follows.
func (s *Slots) Done(i int, err error) *block.Request {
	at := &s.slots[i]
	at.busy = false
	s.held--
	s.alone = false
	r := at.request
	if err == nil && at.op != block.Flush && r.Flags&block.FUA != 0 && r.Op.Writes() && !s.rules.FUA && s.rules.Flush {
		s.again = append(s.again, i)
		return nil
	}
	s.release(i)
	return r
}

func (s *Slots) release(i int) {
	s.slots[i].request = nil
	s.free = append(s.free, i)
}

// Oldest returns the start time of the oldest step that the hardware is processing.
func (s *Slots) Oldest() (started time.Time, ok bool) {
	for i := range s.slots {
		if at := &s.slots[i]; at.busy && (!ok || at.started.Before(started)) {
			started, ok = at.started, true
		}
	}
	return started, ok
}

// Drain removes one request, in any state, and returns it with the start time of its step. The time
// is zero if the hardware does not have the request. A nil request means that none is left.
func (s *Slots) Drain() (r *block.Request, slot int, started time.Time) {
	for i := range s.slots {
		at := &s.slots[i]
		if at.request == nil {
			continue
		}
		if r = at.request; at.busy {
			started = at.started
			s.held--
		}
		at.busy = false
		s.release(i)
		return r, i, started
	}
	s.again, s.alone = s.again[:0], false
	return s.waiting.Pop(), -1, started
}
