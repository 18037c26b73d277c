package probe

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"loam/gen/method"
)

// A lane is one goroutine with a sender and a receiver of a queue, which it serves
// in turn: a batch of probes out, then all answers that have come in. So on a
// machine that is busy a lane that has the processor finds its answers waiting,
// in the cache, and nobody has to be woken to take them in. It never sits in a
// receiver for long while there may be probes to send.
//
// Where there are more senders than receivers, or the other way round, the rest
// have lanes with one half only.
type lane struct {
	*run
	number int             // of the receiver
	tx     method.Sender   // nil: it only receives
	rx     method.Receiver // nil: it only sends
	work   <-chan *batch   // run.work; nil when there is no more, or nothing to send by

	b      *batch  // that is being sent
	next   int     // position in it
	at     int64   // when its frames are written
	held   bool    // the sender may have kept something back
	failed bool    // the sender did: what is left of the work goes nowhere
	resets []reset // to be sent
	out    *[]Result
	// Made once, since making them allocates.
	fillProbe, fillReset func(slot []byte) int
	got                  func(frame []byte, at int64)
}

const (
	// flushTimeout is how long a lane waits for frames to leave before it goes on:
	// what has not left by then is asked again in a later pass, if there is one.
	flushTimeout = 100 * time.Millisecond
	// A lane that has had nothing to do looks again after briefWait, then after twice
	// as long each time, up to workWait while there may be more to send, and lastWait
	// when there is not. It is how late it notices either.
	briefWait = 50 * time.Microsecond
	workWait  = 400 * time.Microsecond
	lastWait  = 2 * time.Millisecond
)

func (r *run) newLane(number int, tx method.Sender, rx method.Receiver) *lane {
	l := &lane{run: r, number: number, tx: tx, rx: rx, out: results.Get().(*[]Result)}
	if tx != nil {
		l.work = r.work
	}
	l.fillProbe, l.fillReset, l.got = l.writeProbe, l.writeReset, l.take
	return l
}

// loop ends when stop is closed, or, without a receiver, when there is no more to
// send. It calls sent once, when all its probes have left.
func (l *lane) loop(stop <-chan struct{}, sent func()) {
	runtime.LockOSThread() // it goes on where it was after each system call
	defer runtime.UnlockOSThread()
	defer l.handOver()
	if l.work == nil {
		sent()
	}
	for wait := briefWait; ; {
		if l.rx == nil && l.work == nil {
			return
		}
		select {
		case b, ok := <-l.work:
			if ok {
				l.send(b)
			} else {
				l.work = nil
				l.flush()
				sent()
			}
			wait = briefWait
			continue
		case <-stop:
			return
		default:
		}
		l.flush()
		l.handOver()
		switch longest := l.longestWait(); {
		case l.rx == nil:
			l.awaitWork(sent)
		case l.receive(wait) > 0:
			wait = briefWait
		default:
			wait = min(2*wait, longest)
		}
	}
}

func (l *lane) longestWait() time.Duration {
	if l.work == nil {
		return lastWait
	}
	return workWait
}

// awaitWork is for a lane that does nothing else.
func (l *lane) awaitWork(sent func()) {
	b, ok := <-l.work
	if !ok {
		l.work = nil
		sent()
		return
	}
	l.send(b)
}

// send writes the probes of b and hands them over, and takes in answers meanwhile.
// After an error it goes on taking work, and does nothing with it, until the
// scheduler has heard.
func (l *lane) send(b *batch) {
	l.b = b
	for l.next = 0; l.next < b.n && !l.failed; {
		l.at = l.now()
		n, err := l.tx.Send(min(b.n-l.next, burstSize), l.fillProbe)
		l.sent.Add(uint64(n))
		l.held = true
		l.fail(err)
		l.receive(0)
	}
	l.b = nil
	l.free <- b
}

func (l *lane) writeProbe(slot []byte) int {
	if l.next == l.b.n {
		return 0
	}
	q := l.space.at(l.b.positions[l.next])
	l.next++
	return l.form.put(slot, q, l.at)
}

// fail ends the run if the sender has failed.
func (l *lane) fail(err error) {
	if err != nil {
		l.failed = true
		l.cancel(fmt.Errorf("probe: sending: %w", err))
	}
}

// flush has what a sender kept back to make up a batch go out. A timeout means
// that the link is slow: see flushTimeout.
func (l *lane) flush() {
	if l.held && !l.failed {
		l.tx.Flush(flushTimeout)
	}
	l.held = false
}

// results are pooled: lanes take them, the recorder puts them back.
var results = sync.Pool{New: func() any { s := make([]Result, 0, resultBatch); return &s }}

// resultBatch is how many results go through a channel at once.
const resultBatch = 256

// receive takes in all answers that are there, waiting for the first up to wait,
// and returns how many frames there were.
func (l *lane) receive(wait time.Duration) int {
	if l.rx == nil {
		return 0
	}
	sent := l.sent.Load()
	n, err := l.rx.Receive(wait, l.got)
	l.caught[l.number].Store(sent)
	select {
	case l.caughtUp <- struct{}{}:
	default:
	}
	l.sendResets()
	if err != nil {
		// The run ends, and until it has, nobody must wait for this ring.
		l.caught[l.number].Store(math.MaxUint64 / 2)
		l.rx = nil
		l.cancel(fmt.Errorf("probe: receiving: %w", err))
	}
	return n
}

// take judges a frame that arrived at at, in nanoseconds since 1970, or 0 if
// nobody says when.
func (l *lane) take(frame []byte, at int64) {
	now := at - l.start.UnixNano()
	if at == 0 {
		now = l.now()
	}
	rep, v := l.form.read(frame, now)
	if v != genuine {
		l.counts.other[v].Add(1)
		return
	}
	if l.Reset && rep.answer == SYNACK {
		l.resets = append(l.resets, reset{rep.question})
	}
	if res, ok := l.judge(rep, now); ok {
		*l.out = append(*l.out, res)
		if len(*l.out) == resultBatch {
			l.handOver()
		}
	}
}

// handOver gives the results to the recorder: when there are many, or nothing
// else to do.
func (l *lane) handOver() {
	if len(*l.out) == 0 {
		return
	}
	l.found <- record{results: l.out}
	l.out = results.Get().(*[]Result)
}

// reset is owed to a target that has opened a connection for us.
type reset struct{ question }

// sendResets pays them all.
func (l *lane) sendResets() {
	for len(l.resets) > 0 && l.tx != nil && !l.failed {
		n, err := l.tx.Send(min(len(l.resets), burstSize), l.fillReset)
		l.counts.resets.Add(uint64(n))
		l.held = true
		l.fail(err)
	}
	l.resets = l.resets[:0]
}

func (l *lane) writeReset(slot []byte) int {
	last := len(l.resets) - 1
	if last < 0 {
		return 0
	}
	q := l.resets[last].question
	l.resets = l.resets[:last]
	return l.form.putReset(slot, q)
}
