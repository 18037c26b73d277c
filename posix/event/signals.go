package event

import (
	"fmt"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
)

// SizeofInfo is the size of struct signalfd_siginfo in bytes (signalfd(2)).
const SizeofInfo = 128

// Source holds the pending signals of a thread and its process. In a set of signals, bit n-1 stands for signal n.
type Source interface {
	// TakeSignal removes a pending signal that is in the set, and encodes it as a struct signalfd_siginfo. It returns false
	// if none of the set is pending.
	TakeSignal(set uint64, info []byte) bool
	// SignalPending reports whether a signal that is in the set is pending for the process.
	SignalPending(set uint64) bool
	// WatchSignals calls notify whenever a signal has been sent to the process, until stop is called. notify must not block.
	WatchSignals(notify func()) (stop func())
}

// Signals is a file from which signals are read (signalfd(2)). As on Linux, a read takes the signals of the reader, and
// waiters are notified of signals to the process that has created the file.
type Signals struct {
	set  atomic.Uint64
	of   Source
	stop func()
	q    file.Queue
}

// NewSignals returns a file for the signals of a set.
func NewSignals(of Source, set uint64) *Signals {
	s := &Signals{of: of}
	s.set.Store(set)
	s.stop = of.WatchSignals(func() { s.q.Notify(file.PollIn) })
	return s
}

// SetSignals changes the set.
func (s *Signals) SetSignals(set uint64) {
	s.set.Store(set)
	s.q.Notify(file.PollIn)
}

// Name implements file.Named.
func (s *Signals) Name() string { return "anon_inode:[signalfd]" }

// Details implements file.Detailed.
func (s *Signals) Details() string { return fmt.Sprintf("sigmask:\t%016x\n", s.set.Load()) }

func (s *Signals) Queue() *file.Queue              { return &s.q }
func (s *Signals) Mode() uint32                    { return 0o600 }
func (s *Signals) Close()                          { s.stop() }
func (s *Signals) Write([]byte) (int, linux.Errno) { return 0, linux.EINVAL }

func (s *Signals) Events() file.Events {
	if s.of.SignalPending(s.set.Load()) {
		return linux.POLLIN // without POLLRDNORM, as on Linux
	}
	return 0
}

// Read implements file.File. It takes signals of the process that has created the file.
func (s *Signals) Read(b []byte) (int, linux.Errno) { return s.take(s.of, b) }

// take stores as many pending signals of the source as fit into b. Errors: EINVAL if b has no room for one, EAGAIN if none
// is pending.
func (s *Signals) take(of Source, b []byte) (int, linux.Errno) {
	if len(b) < SizeofInfo {
		return 0, linux.EINVAL
	}
	n := 0
	for len(b)-n >= SizeofInfo && of.TakeSignal(s.set.Load(), b[n:n+SizeofInfo]) {
		n += SizeofInfo
	}
	if n == 0 {
		return 0, linux.EAGAIN
	}
	return n, 0
}

// ReadFor implements read(2) by a thread. The thread's pending signals are taken from
// source. ReadFor waits for a signal unless nonblocking is set. Errors: EINVAL, EAGAIN,
// EINTR.
func (s *Signals) ReadFor(source Source, b []byte, nonblocking bool, task file.Task) (int, linux.Errno) {
	n, errno := s.take(source, b)
	if errno != linux.EAGAIN || nonblocking {
		return n, errno
	}
	sleeper := file.NewSleeper(&s.q, 0, task)
	defer sleeper.Leave()
	for {
		if n, errno = s.take(source, b); errno != linux.EAGAIN {
			return n, errno
		}
		if errno = sleeper.Sleep(); errno != 0 {
			return -1, errno
		}
	}
}
