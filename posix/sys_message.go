package posix

import (
	"encoding/binary"
	"math"
	"slices"

	"loam/abi/linux"
	"loam/posix/inet"
	"loam/posix/socket"
)

// Calls that send and receive messages: sendto, sendmsg, recvfrom, recvmsg.

// Send implements sendto(2) and sendmsg(2). On a blocking socket it waits for room, at most for
// SO_SNDTIMEO, unless m.Flags has MSG_DONTWAIT. Descriptors in m.Control are passed with the first bytes.
func (p *Process) Send(fd int, b []byte, m Outgoing) (int, Errno) {
	o, s, errno := p.socket(fd)
	if errno != 0 {
		return -1, errno
	}
	if _, ok := s.(socket.Urgent); m.Flags&linux.MSG_OOB != 0 && !ok {
		return -1, linux.EOPNOTSUPP
	}
	if s.Common().Domain == linux.AF_UNIX {
		m.By, m.Sender = p, p.sender()
	}
	if len(m.Control) > 0 {
		if errno = p.packControl(s.Common().Domain, &m); errno != 0 {
			return -1, errno
		}
		defer socket.DropControl(m.Control) // if the receiver's queue has accepted the message, no descriptions are left in it
	}
	n, errno := s.Send(b, m)
	wait := !o.Nonblocking() && m.Flags&linux.MSG_DONTWAIT == 0
	if wait && (errno == linux.EINPROGRESS || errno == linux.EALREADY) {
		m.Flags &^= linux.MSG_FASTOPEN
		errno = p.begun(s)
	}
	if wait && (errno == linux.EAGAIN || errno == 0 && n < len(b)) {
		n, errno = p.sendWaiting(s, b, m, max(n, 0))
	}
	if n, errno = inet.Begun(n, errno); errno != 0 {
		return -1, errno
	}
	return n, 0
}

// sendWaiting sends b from offset done on, and waits when necessary. Descriptors are passed only with the first bytes.
func (p *Process) sendWaiting(s socket.Socket, b []byte, m Outgoing, done int) (int, Errno) {
	return p.writeWaiting(s, b, done, func(rest []byte) (int, Errno) {
		if len(rest) < len(b) {
			m.Control = nil
		}
		return s.Send(rest, m)
	})
}

// Recv implements recvfrom(2) and recvmsg(2). On a blocking socket it waits for data, at most for
// SO_RCVTIMEO, unless flags has MSG_DONTWAIT. The caller passes received descriptors to
// InstallPassed, or drops them.
func (p *Process) Recv(fd int, b []byte, flags int) (Received, Errno) {
	o, s, errno := p.socket(fd)
	switch {
	case errno != 0:
		return Received{}, errno
	case flags&linux.MSG_OOB != 0:
		return recvUrgent(s, b, flags)
	case flags&linux.MSG_ERRQUEUE != 0:
		return inet.RecvError(s, b)
	}
	r, errno := s.Recv(b, flags)
	if !o.Nonblocking() && flags&linux.MSG_DONTWAIT == 0 {
		all := flags&linux.MSG_WAITALL != 0 && s.Common().Type == linux.SOCK_STREAM && flags&linux.MSG_PEEK == 0
		if errno == linux.EAGAIN || errno == 0 && all && r.N > 0 && r.N < len(b) && !hasPassed(r.Control) {
			r, errno = p.recvWaiting(s, b, flags, r, all)
		}
	}
	r.Flags |= flags & linux.MSG_CMSG_CLOEXEC // Linux returns MSG_CMSG_CLOEXEC in msg_flags if the caller has set it
	return r, errno
}

// hasPassed reports whether control messages contain descriptions. As on Linux, MSG_WAITALL does not wait for data after them.
func hasPassed(list []Control) bool {
	return slices.ContainsFunc(list, func(c Control) bool { return len(c.Passed) > 0 })
}

// recvUrgent receives the urgent byte, and never waits for it.
func recvUrgent(s socket.Socket, b []byte, flags int) (Received, Errno) {
	t, ok := s.(socket.Urgent)
	if !ok {
		return Received{}, linux.EINVAL
	}
	return t.RecvUrgent(b, flags)
}

// recvWaiting waits for a message, or, if all is set, until b is full or the stream ends. r describes
// what has been received already.
func (p *Process) recvWaiting(s socket.Socket, b []byte, flags int, r Received, all bool) (Received, Errno) {
	timeout, _ := s.Common().Timeouts()
	w := p.newSleeper(s.Queue(), timeout)
	defer w.Leave()
	done := r.N
	for {
		if done > 0 && socket.FromAnother(s, r.Sender) {
			return r, 0
		}
		more, errno := s.Recv(b[done:], flags)
		if errno == 0 {
			if done += more.N; done == more.N {
				r = more
			} else if hasPassed(more.Control) {
				r.Control = append(r.Control, more.Control...)
			}
			r.N, r.Len = done, done+more.Len-more.N
			if !all || more.N == 0 || done == len(b) || hasPassed(more.Control) {
				return r, 0
			}
			continue
		}
		if errno == linux.EAGAIN {
			if errno = w.Sleep(); errno == 0 {
				continue
			}
		}
		if done > 0 {
			return r, 0
		}
		return r, errno
	}
}

// packControl checks the control messages of level SOL_SOCKET. For a Unix socket, it replaces descriptor numbers in SCM_RIGHTS messages
// by references to their descriptions, and sets the sender that an SCM_CREDENTIALS message names. Errors: EBADF, EINVAL, EPERM, ESRCH, ETOOMANYREFS.
func (p *Process) packControl(family int, m *Outgoing) (errno Errno) {
	for i := range m.Control {
		c := &m.Control[i]
		if c.Level != linux.SOL_SOCKET {
			continue
		}
		if errno = c.Check(family); errno == 0 && c.Type == linux.SCM_CREDENTIALS && family == linux.AF_UNIX {
			m.Sender, errno = p.claimed(c.Data)
		}
		if errno == 0 && c.Type == linux.SCM_RIGHTS && family == linux.AF_UNIX {
			most := p.MostFiles()
			if p.pipeCreator().Unlimited {
				most = math.MaxInt
			}
			errno = p.names.Pass(c, p.fds, p.Identity().UID, most)
		}
		if errno != 0 {
			socket.DropControl(m.Control[:i])
			return errno
		}
	}
	return 0
}

// InstallPassed allocates descriptors for the first most descriptions in a received message, stores the numbers in its Data,
// and releases the others. It reports whether all have a descriptor.
func (p *Process) InstallPassed(c *Control, most int, cloexec bool) (all bool) {
	c.Data, all = nil, true
	for i, o := range c.Take() {
		fd, errno := -1, linux.EMFILE
		if i < most {
			fd, errno = p.fds.Insert(o, 0, p.MostFiles(), cloexec)
		}
		if o.Release(); errno == 0 {
			c.Data = binary.NativeEndian.AppendUint32(c.Data, uint32(fd))
		}
		all = all && errno == 0
	}
	return all
}

// Uninstall removes a descriptor that the program has never seen. Unlike Close, it leaves record locks on the file alone.
func (p *Process) Uninstall(fd int) { p.fds.Remove(fd) }
