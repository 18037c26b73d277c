package posix

import (
	"loam/posix/file"
	"loam/posix/handed"
	"loam/posix/socket"
)

// Connections of the host that are passed to the program: see posix/handed.

// Hand passes a connection of the host to the program. It tries the ways in order, and uses the first whose local address
// has a listening socket. If none has one, the connection is reset. Hand becomes the owner of c.
func (p *Process) Hand(c HostTCP, ways ...Way) { handed.Hand(&p.inet, c, ways...) }

// AttachHost lets the runtime's poller watch the host's descriptor, which it returns. From now on,
// the poller records the events that it receives in the Arrivals a. ok is false if the file is not a
// connection of the host, or if the poller already watches it through another descriptor; then the
// caller must use Attach. DetachHost undoes AttachHost.
func (p *Process) AttachHost(fd int, a *Arrivals) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	w := &file.Watch{}
	if s == nil || !s.BeginPolling(w) {
		return 0, false
	}
	if !p.fds.Poller(fd).CompareAndSwap(nil, w) {
		s.EndPolling()
		return 0, false
	}
	return s.Report(a), true
}

// DetachHost undoes AttachHost. If ok is false, the caller must use Detach.
func (p *Process) DetachHost(fd int) (descriptor int, ok bool) {
	s := p.hostTCP(fd)
	if s == nil {
		return 0, false
	}
	w := s.PolledBy()
	if w == nil || !p.fds.Poller(fd).CompareAndSwap(w, nil) {
		return 0, false
	}
	return s.EndPolling(), true
}

// hostTCP returns the connection of the host behind fd, or nil.
func (p *Process) hostTCP(fd int) *handed.Socket {
	if o := p.fds.Get(fd); o != nil {
		if s, ok := o.File.(*handed.Socket); ok {
			return s
		}
	}
	return nil
}

// peerOf returns the peer address for accept(2). The peer may have closed the connection since.
func peerOf(s socket.Socket) Address {
	if h, ok := s.(interface{ AcceptedFrom() Address }); ok {
		return h.AcceptedFrom()
	}
	a, _ := s.Peer()
	return a
}
