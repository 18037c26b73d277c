package posix

import (
	"encoding/binary"
	"math"
	"sync"
	"syscall"
)

// eventFD is a counter that can be waited for: eventfd(2).
type eventFD struct {
	semaphore bool // a read takes 1, not all
	q         waitQueue

	mu    sync.Mutex // guards count
	count uint64     // below math.MaxUint64
}

const (
	efdSemaphore = 1
	eventSize    = 8 // what is read and written is a uint64
)

// EventFD is eventfd2(2).
func (p *Process) EventFD(count uint32, flags int) (int, Errno) {
	if flags&^(efdSemaphore|syscall.O_CLOEXEC|syscall.O_NONBLOCK) != 0 {
		return -1, syscall.EINVAL
	}
	e := &eventFD{semaphore: flags&efdSemaphore != 0, count: uint64(count)}
	return p.install(e, flags&(syscall.O_CLOEXEC|syscall.O_NONBLOCK))
}

func (e *eventFD) queue() *waitQueue { return &e.q }
func (e *eventFD) mode() uint32      { return 0o600 }
func (e *eventFD) close()            {}

func (e *eventFD) events() Events {
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

func (e *eventFD) read(b []byte) (int, Errno) {
	if len(b) < eventSize {
		return 0, syscall.EINVAL
	}
	e.mu.Lock()
	n := e.count
	if n == 0 {
		e.mu.Unlock()
		return 0, syscall.EAGAIN
	}
	if e.semaphore {
		n = 1
	}
	e.count -= n
	e.mu.Unlock()
	binary.NativeEndian.PutUint64(b, n)
	e.q.tell(PollOut)
	return eventSize, 0
}

func (e *eventFD) write(b []byte) (int, Errno) {
	if len(b) < eventSize {
		return 0, syscall.EINVAL
	}
	n := binary.NativeEndian.Uint64(b)
	e.mu.Lock()
	switch {
	case n == math.MaxUint64:
		e.mu.Unlock()
		return 0, syscall.EINVAL
	case n > math.MaxUint64-1-e.count:
		e.mu.Unlock()
		return 0, syscall.EAGAIN
	}
	e.count += n
	e.mu.Unlock()
	e.q.tell(PollIn)
	return eventSize, 0
}
