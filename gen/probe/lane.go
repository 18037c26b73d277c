package probe

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"loam/gen/method"
)

// lane is a goroutine with a sender and a receiver for one queue. It uses them in turn: it sends a batch of probes, and
// then receives all available answers. So on a busy machine, when a lane gets the processor, it can process the answers
// that have arrived, and no other thread has to be woken for them. While there may be probes to send, a lane never
// waits in its receiver for long.
//
// If the numbers of senders and receivers differ, some lanes have only a sender or only a receiver.
type lane struct {
	*run
	number int             // number of the lane's receiver
	tx     method.Sender   // nil: the lane only receives
	rx     method.Receiver // nil: the lane only sends
	work   <-chan *batch   // run.work; nil after the last batch, or without a sender

	b      *batch  // the batch being sent
	next   int     // index in b of the next position
	at     int64   // time at which the current frames are written, in nanoseconds of the run's clock
	held   bool    // the sender may still hold frames back, to complete a batch
	failed bool    // the sender has failed: the remaining work is discarded
	resets []reset // resets that have not been sent yet
	out    *[]Result
	// Callbacks for sender and receiver; stored, because creating them allocates.
	fillProbe, fillReset func(slot []byte) int
	got                  func(frame []byte, at int64)
}

const (
	// flushTimeout is the maximum time that a lane waits until its frames have been sent. Then it continues. If a probe
	// has not been sent by then, it is repeated in a later pass, if there is one.
	flushTimeout = 100 * time.Millisecond
	// Polling intervals of an idle lane. It first waits briefWait, and doubles the wait each time, up to workWait while
	// there may be more probes to send, and up to lastWait afterwards. The interval is also the delay until the lane
	// notices new work or an answer.
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

// loop runs until stop is closed. Without a receiver, it runs until there is no more work. It calls sent once, after
// all its probes have been sent.
func (l *lane) loop(stop <-chan struct{}, sent func()) {
	runtime.LockOSThread() // a lane that keeps its thread need not wait for one after a system call
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

// awaitWork blocks until there is work. It is used in lanes without a receiver.
func (l *lane) awaitWork(sent func()) {
	b, ok := <-l.work
	if !ok {
		l.work = nil
		sent()
		return
	}
	l.send(b)
}

// send sends the probes of b, and receives answers after every burst. After an error it discards the work that it gets,
// until the scheduler has noticed the error.
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

// fail ends the run if err is not nil.
func (l *lane) fail(err error) {
	if err != nil {
		l.failed = true
		l.cancel(fmt.Errorf("probe: sending: %w", err))
	}
}

// flush makes the sender send the frames that it holds back to complete a batch. If this times out, the link is slow:
// see flushTimeout.
func (l *lane) flush() {
	if l.held && !l.failed {
		l.tx.Flush(flushTimeout)
	}
	l.held = false
}

// results is a pool of result slices. Lanes take them and the recorder returns them.
var results = sync.Pool{New: func() any { s := make([]Result, 0, resultBatch); return &s }}

// resultBatch is the number of results that are sent over a channel at a time.
const resultBatch = 256

// receive processes all available frames and returns their number. If there are none, it waits for the first one, at
// most for wait.
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
		// The error ends the run. Until the run has ended, the scheduler must not wait for this receiver's ring to be
		// emptied.
		l.caught[l.number].Store(math.MaxUint64 / 2)
		l.rx = nil
		l.cancel(fmt.Errorf("probe: receiving: %w", err))
	}
	return n
}

// take classifies a frame and counts the answer. The parameter at is the time of arrival
// in nanoseconds since 1970, or 0 if it is unknown.
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

// handOver sends the collected results to the recorder. It is called when there are many results, or when the lane is
// idle.
func (l *lane) handOver() {
	if len(*l.out) == 0 {
		return
	}
	l.found <- record{results: l.out}
	l.out = results.Get().(*[]Result)
}

// reset is a reset that has to be sent to a target, because it has answered with a SYN-ACK.
type reset struct{ question }

// sendResets sends all pending resets. If the lane has no working sender, it discards them.
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
