package posix

import (
	"encoding/binary"
	"math"
	"sync"

	"loam/abi/linux"
	"loam/posix/file"
)

// eventFD is a counter that programs can wait for (eventfd(2)).
type eventFD struct {
	semaphore bool // a read takes 1, not all
	q         file.Queue

	mu    sync.Mutex // guards count
	count uint64     // below math.MaxUint64
}

const (
	eventSize = 8 // reads and writes transfer a uint64
)

// EventFD implements eventfd2(2). Errors: EINVAL, EMFILE.
func (p *Process) EventFD(count uint32, flags int) (int, Errno) {
	if flags&^(linux.EFD_SEMAPHORE|linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return -1, linux.EINVAL
	}
	e := &eventFD{semaphore: flags&linux.EFD_SEMAPHORE != 0, count: uint64(count)}
	return p.install(e, flags&(linux.O_CLOEXEC|linux.O_NONBLOCK))
}

func (e *eventFD) Queue() *file.Queue { return &e.q }
func (e *eventFD) Mode() uint32       { return 0o600 }
func (e *eventFD) Close()             {}

func (e *eventFD) Events() Events {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ev Events
	if e.count > 0 {
		ev |= PollIn
	}
	if e.count < math.MaxUint64-1 {
		ev |= PollOut
	}
	return ev
}

// Read takes the counter, or 1 in semaphore mode. Errors: EAGAIN if the counter is 0, EINVAL for a
// short buffer.
func (e *eventFD) Read(b []byte) (int, Errno) {
	if len(b) < eventSize {
		return 0, linux.EINVAL
	}
	e.mu.Lock()
	n := e.count
	if n == 0 {
		e.mu.Unlock()
		return 0, linux.EAGAIN
	}
	if e.semaphore {
		n = 1
	}
	e.count -= n
	e.mu.Unlock()
	binary.NativeEndian.PutUint64(b, n)
	e.q.Notify(PollOut)
	return eventSize, 0
}

// Write adds to the counter. Errors: EAGAIN if the sum would exceed the maximum, EINVAL.
func (e *eventFD) Write(b []byte) (int, Errno) {
	if len(b) < eventSize {
		return 0, linux.EINVAL
	}
	n := binary.NativeEndian.Uint64(b)
	e.mu.Lock()
	switch {
	case n == math.MaxUint64:
		e.mu.Unlock()
		return 0, linux.EINVAL
	case n > math.MaxUint64-1-e.count:
		e.mu.Unlock()
		return 0, linux.EAGAIN
	}
	e.count += n
	e.mu.Unlock()
	e.q.Notify(PollIn)
	return eventSize, 0
}
