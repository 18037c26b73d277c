package posix

import (
	"sync"
	"syscall"
	"time"
)

// socket is a file of the sockets API. Like those of file its methods never
// block: what would is EAGAIN, and Process waits.
type socket interface {
	file
	base() *socketBase
	bind(a Address) Errno
	listen(backlog int) Errno
	accept() (socket, Errno)
	// connect begins to connect: EINPROGRESS, EALREADY while it goes on.
	connect(a Address) Errno
	shutdown(how int) Errno
	local() Address
	peer() (Address, Errno)
	send(b []byte, m Outgoing) (int, Errno)
	recv(b []byte, flags int) (Received, Errno)
	// takeError returns and clears the error that is waiting.
	takeError() Errno
	option(level, name int) ([]byte, Errno)
	setOption(level, name int, value []byte) Errno
	// buffered and unsent are what FIONREAD and TIOCOUTQ ask for, in bytes.
	buffered() int
	unsent() int
}

// Outgoing is what goes with the bytes of a message that is sent.
type Outgoing struct {
	To      Address // AF_UNSPEC: the peer
	Flags   int     // MSG_*
	Control []Control
}

// Received is what came with the bytes of a message that was received.
type Received struct {
	N       int // bytes stored
	Len     int // of the message, which may be more than was stored
	From    Address
	Flags   int // MSG_TRUNC, MSG_EOR
	Control []Control
}

// Control is one control message (cmsg(3)).
type Control struct {
	Level, Type int
	Data        []byte
	passed      []*open // of SCM_RIGHTS: what was passed, which Data does not say
}

// socketBase is what sockets of all families have.
type socketBase struct {
	q                waitQueue
	domain, typ, pro int

	mu          sync.Mutex // guards what follows, and what the family adds
	recvTimeout time.Duration
	sendTimeout time.Duration
	remembered  map[optionName]int // options that have no effect here
	passCred    bool               // SO_PASSCRED
}

func (s *socketBase) base() *socketBase { return s }
func (s *socketBase) queue() *waitQueue { return &s.q }
func (s *socketBase) mode() uint32      { return syscall.S_IFSOCK | 0o777 }

// timeouts returns how long receiving and sending may block; zero: for ever.
func (s *socketBase) timeouts() (recv, send time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recvTimeout, s.sendTimeout
}

// harmless are the options of SOL_SOCKET that a program may set and read back
// although nothing here depends on them: they tune what this system does not
// have, or choose what it does anyway.
var harmless = map[int]bool{
	syscall.SO_DEBUG: true, syscall.SO_DONTROUTE: true, syscall.SO_OOBINLINE: true, syscall.SO_BROADCAST: true,
	syscall.SO_NO_CHECK: true, syscall.SO_PRIORITY: true, syscall.SO_RCVLOWAT: true,
	syscall.SO_TIMESTAMP: true, soMark: true, soBusyPoll: true, soIncomingCPU: true,
	soMaxPacingRate: true, soRxqOvfl: true, soPassSec: true,
}

// option reads an option of level SOL_SOCKET that is the same for all families.
func (s *socketBase) option(name int) ([]byte, Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case syscall.SO_TYPE:
		return intValue(s.typ), 0
	case soDomain:
		return intValue(s.domain), 0
	case soProtocol:
		return intValue(s.pro), 0
	case syscall.SO_PASSCRED:
		return boolValue(s.passCred), 0
	case syscall.SO_RCVTIMEO:
		return timeValue(s.recvTimeout), 0
	case syscall.SO_SNDTIMEO:
		return timeValue(s.sendTimeout), 0
	}
	if harmless[name] {
		return intValue(s.remembered[optionName{syscall.SOL_SOCKET, name}]), 0
	}
	return nil, syscall.ENOPROTOOPT
}

// setOption sets one.
func (s *socketBase) setOption(name int, value []byte) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errno Errno
	switch name {
	case syscall.SO_RCVTIMEO:
		s.recvTimeout, errno = parseTime(value)
		return errno
	case syscall.SO_SNDTIMEO:
		s.sendTimeout, errno = parseTime(value)
		return errno
	}
	n, errno := parseInt(value)
	switch {
	case errno != 0:
		return errno
	case name == syscall.SO_PASSCRED:
		s.passCred = n != 0
		return 0
	case !harmless[name]:
		return syscall.ENOPROTOOPT
	}
	s.keep(optionName{syscall.SOL_SOCKET, name}, n)
	return 0
}

// keep stores the value of an option that has no effect. The caller holds mu.
func (s *socketBase) keep(name optionName, n int) {
	if s.remembered == nil {
		s.remembered = make(map[optionName]int)
	}
	s.remembered[name] = n
}

// remember and recall are keep and its opposite for options of families.
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

// kept is what an option was set to, or what it is by default; the caller holds mu.
func (s *socketBase) kept(name optionName) int {
	n, set := s.remembered[name]
	if !set && (name == mtuDiscover || name == mtuDiscover6) {
		return syscall.IP_PMTUDISC_WANT
	}
	return n
}
