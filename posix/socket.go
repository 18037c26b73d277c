package posix

import (
	"encoding/binary"
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
	passed      []passed // of SCM_RIGHTS: what was passed, which Data does not say
}

// passed is a descriptor on its way: an open file of ours, or a descriptor of
// the host that we own.
type passed struct {
	open   *open
	hostFD int
}

// socketBase is what sockets of all families have.
type socketBase struct {
	q                waitQueue
	domain, typ, pro int

	mu          sync.Mutex // guards what follows, and what the family adds
	recvTimeout time.Duration
	sendTimeout time.Duration
	remembered  map[int]int // options of SOL_SOCKET that have no effect here
	passCred    bool        // SO_PASSCRED
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
	syscall.SO_DEBUG: true, syscall.SO_DONTROUTE: true, syscall.SO_OOBINLINE: true,
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
		return intValue(s.remembered[name]), 0
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
	if s.remembered == nil {
		s.remembered = make(map[int]int)
	}
	s.remembered[name] = n
	return 0
}

// intValue and the functions below are the representations of option values.
func intValue(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

func boolValue(on bool) []byte {
	if on {
		return intValue(1)
	}
	return intValue(0)
}

// timeValue is a struct timeval.
func timeValue(d time.Duration) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second))
	return binary.NativeEndian.AppendUint64(b, uint64(d%time.Second/time.Microsecond))
}

func parseInt(b []byte) (int, Errno) {
	if len(b) < 4 {
		return 0, syscall.EINVAL
	}
	return int(int32(binary.NativeEndian.Uint32(b))), 0
}

func parseTime(b []byte) (time.Duration, Errno) {
	if len(b) < 16 {
		return 0, syscall.EINVAL
	}
	sec, usec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	switch {
	case usec < 0 || usec >= 1e6:
		return 0, syscall.EDOM
	case sec < 0:
		return 0, 0
	case sec > 1<<31:
		return 0, 0 // longer than anybody waits
	}
	return time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond, 0
}
