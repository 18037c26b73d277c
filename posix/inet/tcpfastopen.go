package inet

import (
	"math"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/fastopen"
)

// TCP Fast Open (RFC 7413): TCP_FASTOPEN and its relatives of tcp(7), and MSG_FASTOPEN of send(2).

// Bits of net.ipv4.tcp_fastopen.
const (
	fastClient         = 0x1   // clients may send data in a SYN
	fastServer         = 0x2   // listeners may accept it
	fastClientNoCookie = 0x4   // clients send it without a cookie
	fastServerNoCookie = 0x200 // listeners accept it without a cookie
	fastEveryListener  = 0x400 // listeners without TCP_FASTOPEN have their backlog as its value
)

// Options of Fast Open, beside FastOpenConnect.
var (
	fastOpen         = socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_FASTOPEN}
	fastOpenKey      = socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_FASTOPEN_KEY}
	fastOpenNoCookie = socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_FASTOPEN_NO_COOKIE}
)

// fastState is the state of Fast Open of a socket. Its fields are guarded by the lock of the socket, except setting.
type fastState struct {
	setting  *atomic.Int64 // net.ipv4.tcp_fastopen
	most     int           // TCP_FASTOPEN
	noCookie bool          // TCP_FASTOPEN_NO_COOKIE
	connect  bool          // TCP_FASTOPEN_CONNECT
	keys     *fastopen.Keys
	waiting  atomic.Pointer[socket.Address] // connect(2) has returned, and the first write opens the connection to this address; nil: no
}

func (f *fastState) has(bit int64) bool { return f.setting != nil && f.setting.Load()&bit != 0 }

// listening stores the options of a listener in o.
func (f *fastState) listening(o *stack.TCPOptions) {
	o.FastOpen, o.FastOpenNoCookie = 0, f.noCookie || f.has(fastServerNoCookie)
	if f.has(fastServer) {
		o.FastOpen = uint16(min(f.most, math.MaxUint16))
	}
}

// setFast sets an option of Fast Open. Errors: EINVAL for a wrong value and for a socket with a connection, EOPNOTSUPP if clients may
// not use Fast Open.
func (s *TCPSocket) setFast(key socket.OptionName, value []byte) linux.Errno {
	if key == fastOpenKey {
		keys := fastopen.NewKeys(value)
		if keys == nil {
			return linux.EINVAL
		}
		return s.changeFast(func(f *fastState) { f.keys = keys })
	}
	n, errno := socket.ParseInt(value)
	switch {
	case errno != 0:
		return errno
	case n < 0, key != fastOpen && n > 1, s.conn.Load() != nil, key == FastOpenConnect && s.listener.Load() != nil:
		return linux.EINVAL
	case key == FastOpenConnect && !s.fast.has(fastClient):
		return linux.EOPNOTSUPP
	}
	return s.changeFast(func(f *fastState) {
		switch key {
		case fastOpen:
			f.most = min(n, linux.SOMAXCONN)
		case fastOpenNoCookie:
			f.noCookie = n != 0
		case FastOpenConnect:
			f.connect = n != 0
		}
	})
}

// changeFast changes the state, and the options of a listener.
func (s *TCPSocket) changeFast(change func(*fastState)) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	change(&s.fast)
	if l := s.listener.Load(); l != nil {
		l.SetOptions(s.fast.listening)
		l.SetFastOpenKeys(s.fast.keys)
	}
	return 0
}

// fastOption returns the value of an option of Fast Open. TCP_FASTOPEN_KEY has no bytes if the socket has no key of its own.
func (s *TCPSocket) fastOption(key socket.OptionName) ([]byte, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch key {
	case fastOpen:
		return socket.IntValue(s.fast.most), true
	case fastOpenNoCookie:
		return socket.BoolValue(s.fast.noCookie), true
	case FastOpenConnect:
		return socket.BoolValue(s.fast.connect), true
	case fastOpenKey:
		if s.fast.keys == nil {
			return []byte{}, true
		}
		return s.fast.keys.Bytes(), true
	}
	return nil, false
}

// postpone reports whether connect(2) returns at once and the first write opens the connection (TCP_FASTOPEN_CONNECT). The caller
// holds mu.
func (s *TCPSocket) postpone(a socket.Address) bool {
	if !s.fast.connect || !s.fast.has(fastClient) || !s.withoutCookie() && !s.net.HasFastOpenCookie(a.IP.Addr()) {
		return false
	}
	s.fast.waiting.Store(&a)
	return true
}

// unconnected returns the error of a read that has seen no connection: EAGAIN if connect(2) was postponed, or if another thread has
// opened the connection meanwhile.
func (s *TCPSocket) unconnected() linux.Errno {
	if s.fast.waiting.Load() != nil || s.conn.Load() != nil {
		return linux.EAGAIN
	}
	return linux.ENOTCONN
}

// withoutCookie reports whether the SYN may have data without a cookie.
func (s *TCPSocket) withoutCookie() bool { return s.fast.noCookie || s.fast.has(fastClientNoCookie) }

// sendFast implements MSG_FASTOPEN: it opens a connection whose SYN has as much of b as fits, n bytes, and returns EINPROGRESS even if
// n is not 0, because a blocking caller waits for the handshake: see Begun. Other errors: those of connect(2), EOPNOTSUPP.
func (s *TCPSocket) sendFast(b []byte, to socket.Address) (int, linux.Errno) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if a := s.fast.waiting.Load(); a != nil {
		return s.openWaiting(*a, b)
	}
	switch c := s.conn.Load(); {
	case !s.fast.has(fastClient) || to.Family == linux.AF_UNSPEC:
		return 0, linux.EOPNOTSUPP
	case c != nil && c.Connected():
		return 0, linux.EISCONN
	case c != nil && c.Events()&stack.Hangup == 0:
		return 0, linux.EALREADY
	}
	return s.open(to, b, true)
}

// Begun returns the result of a send that did not wait for the handshake of the connection that it has begun, or was interrupted.
func Begun(n int, errno linux.Errno) (int, linux.Errno) {
	if (errno == linux.EINPROGRESS || errno == linux.EINTR) && n > 0 {
		errno = 0
	}
	return n, errno
}

// Opened is called after a send has waited for the handshake. The next connect(2) returns EISCONN. Errors: ECONNABORTED if
// another thread has taken the error of the handshake.
func (s *TCPSocket) Opened() linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if c := s.conn.Load(); c == nil || !c.Connected() {
		return linux.ECONNABORTED
	}
	s.reported = true
	return 0
}

// sendFirst is the first write after a connect(2) that was postponed. done is false if there was none, or if another thread has
// written first.
func (s *TCPSocket) sendFirst(b []byte) (n int, errno linux.Errno, done bool) {
	if s.fast.waiting.Load() == nil {
		return 0, 0, false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	a := s.fast.waiting.Load()
	if a == nil {
		return 0, 0, false
	}
	n, errno = s.openWaiting(*a, b)
	return n, errno, true
}

// openWaiting opens the connection to a, which connect(2) has postponed, as sendFast does. Other threads see the end of the waiting
// only after they can see the connection. The caller holds mu.
func (s *TCPSocket) openWaiting(a socket.Address, b []byte) (int, linux.Errno) {
	if !s.fast.has(fastClient) {
		return 0, linux.EOPNOTSUPP
	}
	n, errno := s.open(a, b, true)
	s.fast.waiting.Store(nil)
	if errno != linux.EINPROGRESS {
		s.Waiters.Notify(file.PollIn | file.PollOut) // a waiting read returns ENOTCONN
	}
	return n, errno
}

// dial starts to connect. If fast is set, it uses Fast Open, and n bytes of b are in the SYN. The caller holds mu.
func (s *TCPSocket) dial(a socket.Address, b []byte, fast bool) (c *stack.TCPConn, n int, errno linux.Errno) {
	remote, errno := s.inetName(a)
	if errno != 0 {
		return nil, 0, errno
	}
	o := s.opts
	o.FastOpenNoCookie = fast && s.withoutCookie()
	var err error
	switch {
	case s.binding != nil && fast:
		c, n, err = s.binding.DialFast(remote, o.FastOpenNoCookie, b)
	case s.binding != nil:
		c, err = s.binding.Dial(remote)
	case fast:
		c, n, err = s.net.DialFast(s.any(), remote, o, b)
	default:
		c, err = s.net.DialTCP(s.any(), remote, o)
	}
	if err != nil {
		return nil, 0, file.ToErrno(err)
	}
	if s.binding != nil {
		c.SetOptions(func(has *stack.TCPOptions) { *has = o })
	}
	return c, n, 0
}
