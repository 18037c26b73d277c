package relay

import (
	"time"

	"loam/link"
	"loam/link/ring"
)

// sink is the destination of a line: the queue of a device, or a ring.
type sink interface {
	link.Sender
	Room() <-chan struct{}
}

// line is one direction of a queue. It moves frames from the source through the Machine, which delays them, to the
// sink.
type line struct {
	device  *Device
	source  *ring.Ring
	machine Machine
	to      sink
	over    func() // called when the source has ended and no more frames will be sent

	// Used by the loop only.
	in, out [link.BatchSize]*link.Frame
	due     []*link.Frame // part of out: popped and not sent yet
	full    bool          // the machine has no room; the source may have frames
	ended   bool          // source has ended
}

func newLine(d *Device, m Machine, to sink, over func()) *line {
	return &line{device: d, source: ring.New(depth), machine: m, to: to, over: over}
}

// loop calls the methods of the Machine; no other goroutine does. It returns when the device or the sink is closed, or
// when the source has ended and all frames have been passed on.
func (l *line) loop() {
	defer l.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Since(l.device.start)
		l.fill(now)
		if l.drain(now) != nil {
			return
		}
		if l.full && l.machine.Room() > 0 {
			continue
		}
		at, holds := l.machine.Next()
		if l.ended && !holds && len(l.due) == 0 {
			return
		}
		if !l.wait(timer, holds, at-now) {
			return
		}
	}
}

// fill moves frames from the source to the Machine, while that has room.
func (l *line) fill(now time.Duration) {
	for {
		room := min(l.machine.Room(), len(l.in))
		if l.full = room <= 0; l.full {
			return
		}
		n, err := l.source.Poll(l.in[:room])
		for i, f := range l.in[:n] {
			l.machine.Push(now, f)
			l.in[i] = nil
		}
		l.ended = err != nil
		if n == 0 {
			return
		}
	}
}

// drain sends the frames that are due, while the sink has room.
func (l *line) drain(now time.Duration) error {
	for {
		if len(l.due) == 0 {
			l.due = l.out[:l.machine.Pop(now, l.out[:])]
		}
		if len(l.due) == 0 {
			return nil
		}
		n, err := l.to.Send(l.due)
		l.due = l.due[n:]
		if err != nil || len(l.due) > 0 {
			return err
		}
	}
}

// wait blocks until there is work to do. It returns false if there will be no more.
func (l *line) wait(timer *time.Timer, holds bool, delay time.Duration) bool {
	ready := l.source.Ready()
	if l.full || l.ended {
		ready = nil
	}
	var room <-chan struct{}
	var clock <-chan time.Time
	switch {
	case len(l.due) > 0: // the sink is full, so popping more frames would not help
		room = l.to.Room()
	case holds && delay <= 0:
		return true
	case holds:
		timer.Reset(delay)
		clock = timer.C
	}
	select {
	case <-ready:
	case <-clock:
	case _, open := <-room:
		return open
	case <-l.device.done:
		return false
	}
	return true
}

// end frees the frames that are held, and closes the source and the sink.
func (l *line) end() {
	link.FreeAll(l.due)
	l.machine.Discard()
	l.source.Close()
	l.over()
}
