package trace

import (
	"io"
	"sync"
	"time"

	"loam/link"
)

const (
	flushAt    = 64 << 10    // number of bytes in the buffer at which the buffer is written to the file
	flushAfter = time.Second // longest time that a frame waits in the buffer
)

// log is the trace file to which all queues of a device write.
type log struct {
	failed func(error)

	mu         sync.Mutex // guards all fields below
	w          io.Writer
	buf        []byte // data not yet written
	timer      *time.Timer
	armed      bool  // the timer is running and will flush
	ended      bool  // closed, or writing has failed
	err        error // the error of a write
	unreported bool  // err has not been reported

	marks [link.BatchSize]int // offset in buf of each frame of a Send
}

func newLog(w io.Writer, info link.Info, failed func(error)) *log {
	l := &log{failed: failed, w: w, buf: make([]byte, 0, 2*flushAt)}
	l.buf = appendHeader(l.buf, info)
	l.mu.Lock() // the timer may expire before l.timer is set
	defer l.mu.Unlock()
	l.timer, l.armed = time.AfterFunc(flushAfter, l.flushLate), true
	return l
}

// received records frames that have arrived.
func (l *log) received(queue int, fs []*link.Frame) {
	l.mu.Lock()
	defer l.unlock()
	now := time.Now()
	for _, f := range fs {
		l.add(now, flagInbound, queue, f)
		l.flushFull()
	}
}

// send sends fs by a queue of the device and records the frames that the queue took. The device may
// free a frame as soon as it takes it. Therefore all frames are recorded before the call, and the
// records of frames not taken are removed afterwards.
func (l *log) send(q *queue, fs []*link.Frame) (n int, err error) {
	l.mu.Lock()
	defer l.unlock()
	for n < len(fs) {
		part := l.note(q, fs[n:])
		taken, err := q.Queue.Send(fs[n : n+part])
		n += taken
		if taken < part {
			l.buf = l.buf[:l.marks[taken]]
		}
		l.flushFull()
		if taken < part || err != nil {
			return n, err
		}
	}
	return n, nil
}

// note records frames from the front of fs until the buffer is full, and returns their number.
func (l *log) note(q *queue, fs []*link.Frame) (n int) {
	now := time.Now()
	for n < min(len(fs), len(l.marks)) && (n == 0 || len(l.buf) < flushAt) {
		l.marks[n] = len(l.buf)
		if q.info.Carries(fs[n]) {
			l.add(now, flagOutbound, q.number, fs[n])
		}
		n++
	}
	return n
}

func (l *log) add(now time.Time, direction uint32, queue int, f *link.Frame) {
	if !l.ended {
		l.buf = appendPacket(l.buf, now, direction, queue, f.Bytes())
	}
}

func (l *log) flushFull() {
	if len(l.buf) >= flushAt {
		l.flush()
	}
}

// flush writes the buffer. An error ends the log.
func (l *log) flush() {
	if len(l.buf) == 0 || l.ended {
		return
	}
	_, l.err = l.w.Write(l.buf)
	l.buf = l.buf[:0]
	if l.err != nil {
		l.ended, l.unreported = true, true
	}
}

// flushLate is called by the timer, on its own goroutine.
func (l *log) flushLate() {
	l.mu.Lock()
	defer l.unlock()
	l.armed = false
	l.flush()
}

// unlock arms the timer if the buffer is not empty, unlocks mu, and reports a write error that has
// not been reported.
func (l *log) unlock() {
	if len(l.buf) > 0 && !l.armed && !l.ended {
		l.timer.Reset(flushAfter)
		l.armed = true
	}
	report := l.unreported && l.failed != nil
	if report {
		l.unreported = false
	}
	err := l.err
	l.mu.Unlock()
	if report {
		l.failed(err)
	}
}

// close writes the rest of the buffer. It may be called more than once. It returns a write error
// that has not been reported, if there is no failed function.
func (l *log) close() error {
	l.mu.Lock()
	defer l.unlock()
	l.timer.Stop()
	l.flush()
	l.ended = true
	if l.unreported && l.failed == nil {
		l.unreported = false
		return l.err
	}
	return nil
}
