package socket

import (
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// Socket is a file that supports the sockets API. Its methods never block: they return EAGAIN, and posix.Process waits.
type Socket interface {
	file.File
	Common() *Base
	Bind(by Caller, a Address) linux.Errno
	Listen(by Caller, backlog int) linux.Errno
	Accept() (Socket, linux.Errno)
	// Connect starts to connect to an address. Errors: EINPROGRESS if the connection is not established at once; EALREADY
	// while connecting.
	Connect(by Caller, a Address) linux.Errno
	Shutdown(how int) linux.Errno
	Local() Address
	Peer() (Address, linux.Errno)
	Send(b []byte, m Outgoing) (int, linux.Errno)
	Recv(b []byte, flags int) (Received, linux.Errno)
	// TakeError returns and clears the pending error.
	TakeError() linux.Errno
	Option(level, name int) ([]byte, linux.Errno)
	SetOption(level, name int, value []byte) linux.Errno
	// Buffered returns the result of FIONREAD in bytes, and Unsent the result of TIOCOUTQ.
	Buffered() int
	Unsent() int
}

// Outgoing holds the arguments of a send call in addition to the data.
type Outgoing struct {
	To      Address // destination; AF_UNSPEC: the peer
	Flags   int     // MSG_*
	Control []Control
	By      Caller      // the sending thread, if To is an address of AF_UNIX
	Sender  Credentials // sender of a message of a Unix socket (SCM_CREDENTIALS), which By may have claimed
}

// Received describes the result of a receive call.
type Received struct {
	N       int // number of bytes stored in the buffer
	Len     int // length of the message in bytes, which may exceed N
	From    Address
	Flags   int // MSG_TRUNC and MSG_EOR, if they apply
	Control []Control
	Sender  Credentials // as in Outgoing
}

// Control is a control message (cmsg(3)).
type Control struct {
	Level, Type int
	Data        []byte
	Passed      []*file.Description // for SCM_RIGHTS: the descriptions in transit, which Data does not contain
	Process     file.Watched        // for SCM_PIDFD: the process, whose descriptor Data does not contain

	transit *Transit // counts the descriptions in Passed for a user; nil: they are not counted
	user    uint32
}

// Check checks a control message of level SOL_SOCKET that a socket of an address family sends. Errors: EINVAL for an unknown type
// or a wrong length.
func (c *Control) Check(family int) linux.Errno {
	isUnix := family == linux.AF_UNIX
	switch c.Type {
	case linux.SCM_RIGHTS:
		return 0
	case linux.SCM_CREDENTIALS:
		if !isUnix || len(c.Data) == linux.SizeofUcred && ParseCredentials(c.Data).valid() {
			return 0
		}
	case linux.SO_MARK, linux.SO_TIMESTAMPING: // they are ignored
		if !isUnix && len(c.Data) == 4 {
			return 0
		}
	}
	return linux.EINVAL
}

// Base is the part that sockets of all address families share.
type Base struct {
	Waiters                file.Queue
	Domain, Type, Protocol int // AF_*; SOCK_* without SOCK_NONBLOCK and SOCK_CLOEXEC; and the protocol

	Mu          sync.Mutex         // guards the fields below, and the fields of the socket that embeds the Base
	recvTimeout time.Duration      // SO_RCVTIMEO; 0: no timeout
	sendTimeout time.Duration      // SO_SNDTIMEO; 0: no timeout
	remembered  map[OptionName]int // values of options that have no effect
	PassCred    bool               // SO_PASSCRED
	PassPIDFD   bool               // SO_PASSPIDFD, of Unix sockets
	linger      Linger             // SO_LINGER; it has no effect, because close does not wait
}

// Asynchronous implements file.Asynchronous.
func (s *Base) Asynchronous() {}

// Urgent implements the marker for files whose owner receives SIGURG.
func (s *Base) Urgent() {}

func (s *Base) Common() *Base      { return s }
func (s *Base) Queue() *file.Queue { return &s.Waiters }
func (s *Base) Mode() uint32       { return linux.S_IFSOCK | 0o777 }

// Timeouts returns how long receiving and sending may block; 0 means forever.
func (s *Base) Timeouts() (recv, send time.Duration) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.recvTimeout, s.sendTimeout
}

// harmless are options of level SOL_SOCKET that a program can set and read but that have no effect. They tune features that
// Loam lacks, or select what Loam does anyway. The value is true for options that read as 0 or 1.
var harmless = map[int]bool{
	linux.SO_DEBUG: true, linux.SO_DONTROUTE: true, linux.SO_OOBINLINE: true, linux.SO_BROADCAST: true,
	linux.SO_NO_CHECK: true, linux.SO_PRIORITY: false, linux.SO_RCVLOWAT: false,
	linux.SO_TIMESTAMP: true, linux.SO_MARK: false, linux.SO_BUSY_POLL: false, linux.SO_INCOMING_CPU: false,
	linux.SO_MAX_PACING_RATE: false, linux.SO_RXQ_OVFL: true, linux.SO_PASSSEC: true,
}

// Option returns the value of an option of level SOL_SOCKET that all address families share.
func (s *Base) Option(name int) ([]byte, linux.Errno) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch name {
	case linux.SO_TYPE:
		return IntValue(s.Type), 0
	case linux.SO_DOMAIN:
		return IntValue(s.Domain), 0
	case linux.SO_PROTOCOL:
		return IntValue(s.Protocol), 0
	case linux.SO_PASSCRED:
		return BoolValue(s.PassCred), 0
	case linux.SO_PASSPIDFD:
		if s.Domain != linux.AF_UNIX {
			return nil, linux.EOPNOTSUPP
		}
		return BoolValue(s.PassPIDFD), 0
	case linux.SO_PEERPIDFD:
		return nil, linux.ENODATA
	case linux.SO_RCVTIMEO:
		return TimeValue(s.recvTimeout), 0
	case linux.SO_SNDTIMEO:
		return TimeValue(s.sendTimeout), 0
	case linux.SO_LINGER:
		return s.linger.Value(), 0
	case linux.SO_PEERCRED:
		return NoPeer.Value(), 0
	}
	if name == linux.SO_RCVLOWAT {
		return IntValue(max(s.remembered[OptionName{linux.SOL_SOCKET, name}], 1)), 0
	}
	if _, ok := harmless[name]; ok {
		return IntValue(s.remembered[OptionName{linux.SOL_SOCKET, name}]), 0
	}
	return nil, linux.ENOPROTOOPT
}

// SetOption sets an option of level SOL_SOCKET that all address families share.
func (s *Base) SetOption(name int, value []byte) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var errno linux.Errno
	switch name {
	case linux.SO_RCVTIMEO:
		s.recvTimeout, errno = parseTime(value)
		return errno
	case linux.SO_SNDTIMEO:
		s.sendTimeout, errno = parseTime(value)
		return errno
	case linux.SO_LINGER:
		return s.linger.Set(value)
	}
	n, errno := ParseInt(value)
	isTruth, ok := harmless[name]
	switch {
	case errno != 0:
		return errno
	case name == linux.SO_PASSCRED:
		s.PassCred = n != 0
		return 0
	case name == linux.SO_PASSPIDFD && s.Domain != linux.AF_UNIX:
		return linux.EOPNOTSUPP
	case name == linux.SO_PASSPIDFD:
		s.PassPIDFD = n != 0
		return 0
	case !ok:
		return linux.ENOPROTOOPT
	case isTruth:
		n = int(BoolValue(n != 0)[0])
	}
	s.keep(OptionName{linux.SOL_SOCKET, name}, n)
	return 0
}

// keep stores the value of an option that has no effect. The caller holds mu.
func (s *Base) keep(name OptionName, n int) {
	if s.remembered == nil {
		s.remembered = make(map[OptionName]int)
	}
	s.remembered[name] = n
}

// Remember stores the value of an option that has no effect, and Recall returns it.
func (s *Base) Remember(name OptionName, value []byte) linux.Errno {
	n, errno := ParseInt(value)
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.keep(name, n)
	return 0
}

func (s *Base) Recall(name OptionName) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return IntValue(s.Kept(name))
}

// Socket options about the path MTU.
var (
	MTUDiscover  = OptionName{linux.IPPROTO_IP, linux.IP_MTU_DISCOVER}
	MTUDiscover6 = OptionName{linux.IPPROTO_IPV6, linux.IPV6_MTU_DISCOVER}
)

// Remembers returns the stored value of an option, and whether there is one.
func (s *Base) Remembers(name OptionName) (n int, set bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	n, set = s.remembered[name]
	return n, set
}

// Kept returns the stored or default value of an option. The caller holds mu.
func (s *Base) Kept(name OptionName) int {
	n, set := s.remembered[name]
	if !set && (name == MTUDiscover || name == MTUDiscover6) {
		return linux.IP_PMTUDISC_WANT
	}
	return n
}

// RecvTimeout and SendTimeout return how long calls on a file may block; 0 means forever.
func RecvTimeout(f file.File) time.Duration {
	if s, ok := f.(Socket); ok {
		d, _ := s.Common().Timeouts()
		return d
	}
	return 0
}

func SendTimeout(f file.File) time.Duration {
	if s, ok := f.(Socket); ok {
		_, d := s.Common().Timeouts()
		return d
	}
	return 0
}

// Urgent is a socket that supports urgent data.
type Urgent interface {
	// RecvUrgent receives the urgent byte, and never waits for it.
	RecvUrgent(b []byte, flags int) (Received, linux.Errno)
	Marked
}

// Marked is a socket that supports SIOCATMARK.
type Marked interface {
	// AtMark returns 1 if the next byte is the urgent one, and 0 otherwise. Errors: EOPNOTSUPP.
	AtMark() (int, linux.Errno)
}
