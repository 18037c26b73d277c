package posix

import (
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// socket is a file of the sockets API. Like those of file, its methods never block: they return EAGAIN,
// and Process waits.
type socket interface {
	file.File
	base() *socketBase
	bind(a Address) Errno
	listen(backlog int) Errno
	accept() (socket, Errno)
	// connect starts to connect. Errors: EINPROGRESS; EALREADY while connecting.
	connect(a Address) Errno
	shutdown(how int) Errno
	local() Address
	peer() (Address, Errno)
	send(b []byte, m Outgoing) (int, Errno)
	recv(b []byte, flags int) (Received, Errno)
	// takeError returns and clears the pending error.
	takeError() Errno
	option(level, name int) ([]byte, Errno)
	setOption(level, name int, value []byte) Errno
	// buffered and unsent return the results of FIONREAD and TIOCOUTQ, in bytes.
	buffered() int
	unsent() int
}

// Outgoing holds what accompanies the data of a message to send.
type Outgoing struct {
	To      Address // AF_UNSPEC: the peer
	Flags   int     // MSG_*
	Control []Control
}

// Received describes a received message.
type Received struct {
	N       int // bytes stored in the buffer
	Len     int // length of the message, which may exceed N
	From    Address
	Flags   int // MSG_TRUNC, MSG_EOR
	Control []Control
}

// Control is a control message (cmsg(3)).
type Control struct {
	Level, Type int
	Data        []byte
	passed      []*file.Description // SCM_RIGHTS: the descriptions in transit; their numbers are not in Data
}

// socketBase holds what sockets of all families share.
type socketBase struct {
	q                file.Queue
	domain, typ, pro int // AF_*, SOCK_* without flags, and the protocol

	mu          sync.Mutex         // guards the fields below, and those that the family adds
	recvTimeout time.Duration      // SO_RCVTIMEO; 0: none
	sendTimeout time.Duration      // SO_SNDTIMEO; 0: none
	remembered  map[optionName]int // options that have no effect here
	passCred    bool               // SO_PASSCRED
}

// Asynchronous implements file.Asynchronous.
func (s *socketBase) Asynchronous() {}

func (s *socketBase) base() *socketBase  { return s }
func (s *socketBase) Queue() *file.Queue { return &s.q }
func (s *socketBase) Mode() uint32       { return linux.S_IFSOCK | 0o777 }

// timeouts returns how long receiving and sending may block; 0 means forever.
func (s *socketBase) timeouts() (recv, send time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recvTimeout, s.sendTimeout
}

// harmless are options of level SOL_SOCKET that a program can set and read but that have no effect.
// They tune features that Loam lacks, or select what Loam does anyway.
var harmless = map[int]bool{
	linux.SO_DEBUG: true, linux.SO_DONTROUTE: true, linux.SO_OOBINLINE: true, linux.SO_BROADCAST: true,
	linux.SO_NO_CHECK: true, linux.SO_PRIORITY: true, linux.SO_RCVLOWAT: true,
	linux.SO_TIMESTAMP: true, linux.SO_MARK: true, linux.SO_BUSY_POLL: true, linux.SO_INCOMING_CPU: true,
	linux.SO_MAX_PACING_RATE: true, linux.SO_RXQ_OVFL: true, linux.SO_PASSSEC: true,
}

// option returns the value of an option of level SOL_SOCKET that all families share.
func (s *socketBase) option(name int) ([]byte, Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case linux.SO_TYPE:
		return intValue(s.typ), 0
	case linux.SO_DOMAIN:
		return intValue(s.domain), 0
	case linux.SO_PROTOCOL:
		return intValue(s.pro), 0
	case linux.SO_PASSCRED:
		return boolValue(s.passCred), 0
	case linux.SO_RCVTIMEO:
		return timeValue(s.recvTimeout), 0
	case linux.SO_SNDTIMEO:
		return timeValue(s.sendTimeout), 0
	}
	if harmless[name] {
		return intValue(s.remembered[optionName{linux.SOL_SOCKET, name}]), 0
	}
	return nil, linux.ENOPROTOOPT
}

// setOption sets an option of level SOL_SOCKET that all families share.
func (s *socketBase) setOption(name int, value []byte) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errno Errno
	switch name {
	case linux.SO_RCVTIMEO:
		s.recvTimeout, errno = parseTime(value)
		return errno
	case linux.SO_SNDTIMEO:
		s.sendTimeout, errno = parseTime(value)
		return errno
	}
	n, errno := parseInt(value)
	switch {
	case errno != 0:
		return errno
	case name == linux.SO_PASSCRED:
		s.passCred = n != 0
		return 0
	case !harmless[name]:
		return linux.ENOPROTOOPT
	}
	s.keep(optionName{linux.SOL_SOCKET, name}, n)
	return 0
}

// keep stores the value of an option that has no effect. The caller holds mu.
func (s *socketBase) keep(name optionName, n int) {
	if s.remembered == nil {
		s.remembered = make(map[optionName]int)
	}
	s.remembered[name] = n
}

// remember stores an option without effect, and recall returns its value.
func (s *socketBase) remember(name optionName, value []byte) Errno {
	n, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(name, n)
	return 0
}

func (s *socketBase) recall(name optionName) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return intValue(s.kept(name))
}

// kept returns the stored or default value of an option. The caller holds mu.
func (s *socketBase) kept(name optionName) int {
	n, set := s.remembered[name]
	if !set && (name == mtuDiscover || name == mtuDiscover6) {
		return linux.IP_PMTUDISC_WANT
	}
	return n
}
