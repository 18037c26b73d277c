package posix

import (
	"encoding/binary"
	"syscall"
	"time"
)

// Calls that send and receive messages: sendto, sendmsg, recvfrom, recvmsg.

// Send is sendto(2) and sendmsg(2).
func (p *Process) Send(fd int, b []byte, m Outgoing) (int, Errno) {
	o, s, errno := p.socket(fd)
	if errno != 0 {
		return -1, errno
	}
	if _, ok := s.(urgent); m.Flags&syscall.MSG_OOB != 0 && !ok {
		return -1, syscall.EOPNOTSUPP
	}
	if len(m.Control) > 0 {
		if errno = p.packControl(m.Control); errno != 0 {
			return -1, errno
		}
		defer p.dropControl(m.Control)
	}
	n, errno := s.send(b, m)
	if !o.nonblocking() && m.Flags&syscall.MSG_DONTWAIT == 0 &&
		(errno == syscall.EAGAIN || errno == 0 && n < len(b)) {
		n, errno = sendWaiting(s, b, m, max(n, 0))
	}
	if errno != 0 {
		return -1, errno
	}
	return n, 0
}

func sendWaiting(s socket, b []byte, m Outgoing, done int) (int, Errno) {
	_, timeout := s.base().timeouts()
	w := newSleeper(s.queue(), timeout)
	defer w.leave()
	for {
		if done > 0 {
			m.Control = nil // has gone with the first bytes
		}
		n, errno := s.send(b[done:], m)
		if errno == 0 {
			if done += n; done >= len(b) {
				return done, 0
			}
			continue
		}
		if errno == syscall.EAGAIN && w.sleep() {
			continue
		}
		if done > 0 {
			return done, 0
		}
		return -1, errno
	}
}

// Recv is recvfrom(2) and recvmsg(2).
func (p *Process) Recv(fd int, b []byte, flags int) (Received, Errno) {
	o, s, errno := p.socket(fd)
	switch {
	case errno != 0:
		return Received{}, errno
	case flags&syscall.MSG_OOB != 0:
		return recvUrgent(s, b, flags)
	case flags&syscall.MSG_ERRQUEUE != 0:
		return recvError(s, b)
	}
	r, errno := s.recv(b, flags)
	if !o.nonblocking() && flags&syscall.MSG_DONTWAIT == 0 {
		all := flags&syscall.MSG_WAITALL != 0 && s.base().typ == syscall.SOCK_STREAM && flags&syscall.MSG_PEEK == 0
		if errno == syscall.EAGAIN || errno == 0 && all && r.N > 0 && r.N < len(b) {
			r, errno = recvWaiting(s, b, flags, r, all)
		}
	}
	r.Flags |= flags & syscall.MSG_CMSG_CLOEXEC // Linux says again what it was told
	if errno == 0 && len(r.Control) > 0 {
		p.unpackControl(r.Control, flags&syscall.MSG_CMSG_CLOEXEC != 0)
	}
	return r, errno
}

// recvUrgent receives the urgent byte, and never waits for it.
func recvUrgent(s socket, b []byte, flags int) (Received, Errno) {
	t, ok := s.(urgent)
	if !ok {
		return Received{}, syscall.EINVAL
	}
	return t.recvUrgent(b, flags)
}

// recvWaiting waits for a message, or, when all is set, until b is full or the
// stream ends. r is what has been received already.
func recvWaiting(s socket, b []byte, flags int, r Received, all bool) (Received, Errno) {
	timeout, _ := s.base().timeouts()
	w := newSleeper(s.queue(), timeout)
	defer w.leave()
	done := r.N
	for {
		more, errno := s.recv(b[done:], flags)
		if errno == 0 {
			if done += more.N; done == more.N {
				r = more
			}
			r.N, r.Len = done, done+more.Len-more.N
			if !all || more.N == 0 || done == len(b) {
				return r, 0
			}
			continue
		}
		if errno == syscall.EAGAIN && w.sleep() {
			continue
		}
		if done > 0 {
			return r, 0
		}
		return r, errno
	}
}

// maxPassed is SCM_MAX_FD.
const maxPassed = 253

// packControl turns the descriptors of SCM_RIGHTS messages into what they lead
// to. Errors: EBADF, EINVAL.
func (p *Process) packControl(control []Control) Errno {
	for i := range control {
		c := &control[i]
		if c.Level != syscall.SOL_SOCKET || c.Type != syscall.SCM_RIGHTS {
			continue
		}
		if len(c.Data)%4 != 0 || len(c.Data) > maxPassed*4 {
			p.dropControl(control[:i])
			return syscall.EINVAL
		}
		for b := c.Data; len(b) > 0; b = b[4:] {
			o := p.fds.get(int(int32(binary.NativeEndian.Uint32(b))))
			if o == nil || !o.hold() {
				p.dropControl(control[:i+1])
				return syscall.EBADF
			}
			c.passed = append(c.passed, o)
		}
	}
	return 0
}

// dropControl lets go of descriptors that are still under way. A message that
// was taken by the receiver's queue has none left here.
func (p *Process) dropControl(control []Control) {
	for i := range control {
		dropPassed(control[i].passed)
		control[i].passed = nil
	}
}

func dropPassed(list []*open) {
	for _, o := range list {
		o.release()
	}
}

// unpackControl gives descriptors that arrived a number, in Data.
func (p *Process) unpackControl(control []Control, cloexec bool) {
	for i := range control {
		c := &control[i]
		if c.Level != syscall.SOL_SOCKET || c.Type != syscall.SCM_RIGHTS {
			continue
		}
		c.Data = c.Data[:0]
		for _, o := range c.passed {
			fd, _ := p.fds.insert(o, 0, cloexec)
			o.release()
			if fd >= 0 {
				c.Data = binary.NativeEndian.AppendUint32(c.Data, uint32(fd))
			}
		}
		c.passed = nil
	}
}

// recvTimeout and sendTimeout are how long the descriptor may block.
func (o *open) recvTimeout() time.Duration {
	if s, ok := o.file.(socket); ok {
		d, _ := s.base().timeouts()
		return d
	}
	return 0
}

func (o *open) sendTimeout() time.Duration {
	if s, ok := o.file.(socket); ok {
		_, d := s.base().timeouts()
		return d
	}
	return 0
}
