package unix

import (
	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
)

// Connect connects to the socket bound to a name. Errors: EAGAIN if the listener's backlog is full,
// EPROTOTYPE for a socket of another type, and those of Names.find.
func (s *Socket) Connect(by socket.Caller, a socket.Address) linux.Errno {
	if a.Family == linux.AF_UNSPEC && s.Type == linux.SOCK_DGRAM {
		s.Mu.Lock()
		s.other, s.outbox, s.peerName = nil, nil, ""
		s.inbox.AcceptOnly(nil)
		s.Mu.Unlock()
		return 0
	}
	if a.Family != linux.AF_UNIX || a.Name == "" {
		return linux.EINVAL
	}
	if errno := s.nameForCredentials(); errno != 0 {
		return errno
	}
	to, errno := s.names.find(by, a.Name)
	switch {
	case errno != 0:
		return errno
	case to.Type != s.Type:
		return linux.EPROTOTYPE
	case s.Type == linux.SOCK_DGRAM && !to.inbox.Accepts(&s.Waiters):
		return linux.EPERM
	case s.Type == linux.SOCK_DGRAM: // from now on, s receives only messages of its peer
		s.Mu.Lock()
		s.other, s.outbox, s.peerName = to, to.inbox, a.Name
		s.inbox.AcceptOnly(&to.Waiters)
		s.Mu.Unlock()
		s.Waiters.Notify(file.PollOut)
		return 0
	}
	return s.connectStream(by.Credentials(), to)
}

// nameForCredentials binds a socket that has SO_PASSCRED or SO_PASSPIDFD and no name to a generated name, as Linux does.
func (s *Socket) nameForCredentials() (errno linux.Errno) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.closed: // nothing would remove the name
		return linux.EBADF
	case (s.PassCred || s.PassPIDFD) && s.name == "":
		s.name, errno = s.names.bindAbstract(s, "")
	}
	return errno
}

// connectStream creates the server's end of a connection and queues it at the listener. The server's peer has the
// credentials of the caller, and the client's peer has the credentials of the process that called listen(2).
func (s *Socket) connectStream(caller Credentials, to *Socket) linux.Errno {
	if errno := s.join(); errno != 0 {
		return errno
	}
	server, _ := New(s.names, to.owner, s.Type, 0)
	server.inbox = server.newMailbox()
	in := s.newMailbox()
	server.outbox, server.other = in, s
	server.peerCreds = caller
	errno := s.connectTo(to, server, in)
	s.Mu.Lock()
	s.joining = false
	s.Mu.Unlock()
	if errno == 0 {
		to.Waiters.Notify(file.PollIn)
		s.Waiters.Notify(file.PollOut)
	}
	return errno
}

// join sets joining. Until it is cleared, the socket cannot become a listener, and no other thread can connect it.
func (s *Socket) join() linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.closed:
		return linux.EBADF
	case s.inbox != nil:
		return linux.EISCONN
	case s.listening:
		return linux.EINVAL
	case s.joining:
		return linux.EALREADY
	}
	s.joining = true
	return 0
}

// connectTo queues the server's end at a listener, and connects s with the mailbox in. It locks both sockets: first the one that is a listener,
// and then s, which is none.
func (s *Socket) connectTo(to, server *Socket, in *socket.Mailbox) linux.Errno {
	to.Mu.Lock()
	defer to.Mu.Unlock()
	switch {
	case !to.listening || to.closed:
		return linux.ECONNREFUSED
	case len(to.pending) > to.backlog:
		return linux.EAGAIN
	}
	server.name, server.PassCred, server.PassPIDFD = to.name, to.PassCred, to.PassPIDFD
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return linux.EBADF
	}
	server.peerName = s.name
	s.inbox, s.outbox, s.other = in, server.inbox, server
	s.peerCreds, s.peerName = to.peerCreds, to.name
	to.pending = append(to.pending, server)
	return 0
}
