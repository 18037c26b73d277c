package posix

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
)

// SizeofSignalfdSiginfo is the size of struct signalfd_siginfo in bytes (signalfd(2)).
const SizeofSignalfdSiginfo = 128

// Signals is the pending signals of a thread and its process. A Member implements it where there are signals to take. Sets
// have bit n-1 for signal n.
type Signals interface {
	// TakeSignal removes a pending signal of a set and encodes it as a struct signalfd_siginfo. It returns false if none is
	// pending.
	TakeSignal(set uint64, info []byte) bool
	// SignalPending reports whether a signal of a set is pending for the process.
	SignalPending(set uint64) bool
	// WatchSignals calls notify whenever a signal has been sent to the process, until stop is called. notify must not block.
	WatchSignals(notify func()) (stop func())
}

// signalFD is a file from which signals are read (signalfd(2)). As on Linux, a read takes the signals of the reader, and
// waiters are notified of signals to the process that has created the file.
type signalFD struct {
	set  atomic.Uint64
	of   Signals
	stop func()
	q    file.Queue
}

// SignalFD implements signalfd4(2). fd is -1 for a new file. Errors: EINVAL, EBADF, EMFILE; ENOSYS where programs have no
// signals.
func (p *Process) SignalFD(fd int, set uint64, flags int) (int, Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return -1, linux.EINVAL
	}
	const unblockable = 1<<(linux.SIGKILL-1) | 1<<(linux.SIGSTOP-1)
	set &^= unblockable
	if fd != -1 {
		o, errno := p.get(fd)
		if errno != 0 {
			return -1, errno
		}
		s, ok := o.File.(*signalFD)
		if !ok {
			return -1, linux.EINVAL
		}
		s.set.Store(set)
		s.q.Notify(PollIn)
		return fd, 0
	}
	of, ok := p.member.(Signals)
	if !ok {
		return -1, linux.ENOSYS
	}
	s := &signalFD{of: of}
	s.set.Store(set)
	s.stop = of.WatchSignals(func() { s.q.Notify(PollIn) })
	return p.install(s, flags)
}

func (s *signalFD) Queue() *file.Queue        { return &s.q }
func (s *signalFD) Mode() uint32              { return 0o600 }
func (s *signalFD) Close()                    { s.stop() }
func (s *signalFD) Write([]byte) (int, Errno) { return 0, linux.EINVAL }

func (s *signalFD) Events() Events {
	if s.of.SignalPending(s.set.Load()) {
		return PollIn
	}
	return 0
}

// Read implements file, for the process that has created the file.
func (s *signalFD) Read(b []byte) (int, Errno) { return s.take(s.of, b) }

// take reads as many signals as fit into b. Errors: EINVAL if not one does, EAGAIN.
func (s *signalFD) take(of Signals, b []byte) (int, Errno) {
	if len(b) < SizeofSignalfdSiginfo {
		return 0, linux.EINVAL
	}
	n := 0
	for len(b)-n >= SizeofSignalfdSiginfo && of.TakeSignal(s.set.Load(), b[n:n+SizeofSignalfdSiginfo]) {
		n += SizeofSignalfdSiginfo
	}
	if n == 0 {
		return 0, linux.EAGAIN
	}
	return n, 0
}

// readSignals implements read(2) on a signalFD.
func (p *Process) readSignals(o *file.Description, f *signalFD, b []byte) (int, Errno) {
	of, ok := p.member.(Signals)
	if !ok {
		return -1, linux.EINVAL
	}
	n, errno := f.take(of, b)
	if errno != linux.EAGAIN || o.Nonblocking() {
		return n, errno
	}
	s := p.newSleeper(&f.q, 0)
	defer s.Leave()
	for {
		if n, errno = f.take(of, b); errno != linux.EAGAIN {
			return n, errno
		}
		if errno = s.Sleep(); errno != 0 {
			return -1, errno
		}
	}
}
