package event

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
)

// Counter is a counter that programs can wait for (eventfd(2)).
type Counter struct {
	id        uint64
	semaphore bool // EFD_SEMAPHORE: a read subtracts 1 instead of resetting the counter
	q         file.Queue

	mu    sync.Mutex // guards the field count
	count uint64     // value of the counter, at most math.MaxUint64 - 1
}

const (
	eventSize = 8 // size of a read or write in bytes: a uint64
)

// counters is the number of counters that were made. Each has a number of its own in /proc/PID/fdinfo.
var counters atomic.Uint64

// NewCounter returns a counter. With semaphore, a read subtracts 1 from it; otherwise a read returns the whole value and
// resets it to 0.
func NewCounter(count uint32, semaphore bool) *Counter {
	return &Counter{id: counters.Add(1), semaphore: semaphore, count: uint64(count)}
}

// Name implements file.Named.
func (e *Counter) Name() string { return "anon_inode:[eventfd]" }

// Details implements file.Detailed.
func (e *Counter) Details() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	semaphore := 0
	if e.semaphore {
		semaphore = 1
	}
	return fmt.Sprintf("eventfd-count: %16x\neventfd-id: %d\neventfd-semaphore: %d\n", e.count, e.id, semaphore)
}

func (e *Counter) Queue() *file.Queue { return &e.q }
func (e *Counter) Mode() uint32       { return 0o600 }
func (e *Counter) Close()             {}

func (e *Counter) Events() file.Events {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ev file.Events
	if e.count > 0 {
		ev |= linux.POLLIN // Linux reports no POLLRDNORM and POLLWRNORM for counters
	}
	if e.count < math.MaxUint64-1 {
		ev |= linux.POLLOUT
	}
	return ev
}

// Read stores the value of the counter in b and resets it to 0, or in semaphore mode stores 1 and subtracts 1. Errors:
// EAGAIN if the counter is 0, EINVAL for a short buffer.
func (e *Counter) Read(b []byte) (int, linux.Errno) {
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
	e.q.Notify(file.PollOut)
	return eventSize, 0
}

// Write adds to the counter. Errors: EAGAIN if the sum would exceed the maximum, EINVAL.
func (e *Counter) Write(b []byte) (int, linux.Errno) {
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
	e.q.Notify(file.PollIn)
	return eventSize, 0
}
