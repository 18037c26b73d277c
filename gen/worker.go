package gen

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"loam/gen/method"
	"loam/gen/pace"
)

// worker sends the frames of one queue. The queue has one lane for each stream.
type worker struct {
	queue   int
	queues  int
	pin     bool
	senders []method.Sender
	lanes   []*lane
	steps   []Step
	began   int64 // pace.Now at the first frame; ended is pace.Now after the last frame
	ended   int64
	waiter  *pace.Waiter

	control *Control
	rates   *Rates  // the current rates, as the lanes use them
	scale   float64 // scale of the current step
}

// flushTime is the maximum time that a worker waits at its end until its frames have been sent.
const flushTime = 5 * time.Second

// errRefused reports that the kernel has refused every frame so far.
var errRefused = errors.New("the kernel refuses every frame: is a frame longer than the MTU of the interface?")

// loop sends until stop is set or all lanes have finished, then flushes the senders.
func (w *worker) loop(stop *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unname := name(w.queue)
	defer unname()
	if w.pin {
		release := pin(w.queue)
		defer release()
	}
	defer pace.Punctual()()
	w.waiter = pace.NewWaiter()
	w.began = pace.Now()
	err := w.walk(stop)
	w.ended = pace.Now()
	for _, s := range w.senders {
		if e := s.Flush(flushTime); e != nil && err == nil {
			err = fmt.Errorf("queue %d: %w", w.queue, e)
		}
	}
	return err
}

// walk executes the steps of the run. Each step starts at the planned end of the previous one.
func (w *worker) walk(stop *atomic.Bool) error {
	until := w.began
	for _, s := range w.steps {
		w.rates, w.scale = w.control.Rates(), s.Scale
		for i, l := range w.lanes {
			l.enter(w.rate(i), w.rates.Factor*s.Scale, until)
		}
		if until += int64(s.Time); s.Time == 0 {
			until = math.MaxInt64
		}
		if err := w.send(stop, until); err != nil {
			return err
		}
		for _, l := range w.lanes {
			l.leave(until)
		}
	}
	return nil
}

// rate returns the share of a lane's rate that this queue sends, before it is multiplied by the scale.
func (w *worker) rate(lane int) pace.Rate { return w.rates.Of[lane].Share(w.queue, w.queues) }

// follow applies rates that the Control has changed to the lanes.
func (w *worker) follow(now int64) {
	s := w.control.Rates()
	if s == w.rates {
		return
	}
	w.rates = s
	for i, l := range w.lanes {
		l.change(w.rate(i), s.Factor*w.scale, now)
	}
}

// send sends the frames that are due before the time until. It may send a small number of
// late frames after that time, so that the run sends exactly the number of frames that
// its rate and its time imply.
func (w *worker) send(stop *atomic.Bool, until int64) error {
	checked := false
	for !stop.Load() {
		now := pace.Now()
		w.follow(now)
		next, finished := int64(math.MaxInt64), true
		moved := false
		for _, l := range w.lanes {
			if l.done == l.ends {
				continue
			}
			finished = false
			n := l.due(now, until)
			if n == 0 {
				if !l.silent {
					next = min(next, l.clock.Next())
				}
				continue
			}
			moved = true
			if err := l.send(n); err != nil {
				return fmt.Errorf("queue %d: %w", w.queue, err)
			}
		}
		switch {
		case finished, !moved && now >= until:
			return nil
		case !moved:
			w.waiter.Approach(min(next, until))
		case !checked:
			checked = true
			if err := w.refused(); err != nil {
				return err
			}
		}
	}
	return nil
}

// refused returns errRefused if a sender has refused frames and accepted none. It is called after the first frames were
// sent.
func (w *worker) refused() error {
	for _, s := range w.senders {
		if c := s.Counters(); c.Handed == 0 && c.Refused > 0 {
			return errRefused
		}
	}
	return nil
}
