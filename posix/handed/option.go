package handed

import (
	"loam/abi/linux"
	"loam/posix/inet"
	"loam/posix/socket"
)

// Options of TCP sockets whose connection belongs to the host. They are those of Loam's own sockets
// (posix/inet), but options of the connection are forwarded to the host. The seal of a process allows
// these options only (unikernel/seal).

// hostOptions are the options of the host that may be set and read.
var hostOptions = map[socket.OptionName]bool{
	{Level: linux.SOL_SOCKET, Name: linux.SO_KEEPALIVE}: true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_OOBINLINE}: true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_RCVBUF}:    true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUF}:    true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_LINGER}:    true,

	{Level: linux.IPPROTO_TCP, Name: linux.TCP_NODELAY}:      true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_CORK}:         true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_QUICKACK}:     true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPIDLE}:     true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPINTVL}:    true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPCNT}:      true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_LINGER2}:      true,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_USER_TIMEOUT}: true,

	{Level: linux.IPPROTO_IP, Name: linux.IP_TTL}: true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_TOS}: true,
}

// hostAnswers are the options of the host that may only be read, with the maximum size of the value in
// bytes.
var hostAnswers = map[socket.OptionName]int{
	{Level: linux.SOL_SOCKET, Name: linux.SO_ERROR}:    4,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_MAXSEG}: 4,
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_INFO}:   512,
	inet.Congestion: 16,
}

// hostLocal are options that only matter to listeners. They are stored and have no effect.
var hostLocal = map[socket.OptionName]bool{
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEADDR}: true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEPORT}: true,
	inet.V6Only: true,

	{Level: linux.IPPROTO_TCP, Name: linux.TCP_DEFER_ACCEPT}: true,
}

// keepsHere reports whether an option can be set and read but has no effect, because the host's
// connection uses IPv4.
func (s *Socket) keepsHere(key socket.OptionName) bool {
	if key.Level == linux.IPPROTO_IPV6 && (key.Name == linux.IPV6_UNICAST_HOPS || key.Name == linux.IPV6_TCLASS) {
		return true
	}
	return inet.HasNoEffect(key)
}

// Option implements socket.Socket. Options of the connection are read from the host, the others from the
// stored values.
func (s *Socket) Option(level, name int) ([]byte, linux.Errno) {
	key := socket.OptionName{Level: level, Name: name}
	size, ok := hostAnswers[key]
	switch {
	case s.WrongLevel(level):
		return nil, linux.ENOPROTOOPT
	case ok:
	case hostOptions[key]:
		size = 8 // size of struct linger in bytes
	case hostLocal[key]:
		return s.recallGiven(key), 0
	case s.keepsHere(key):
		return s.recallKept(key), 0
	case key == socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_ACCEPTCONN}:
		return socket.BoolValue(false), 0
	case level == linux.SOL_SOCKET:
		return s.Base.Option(name)
	default:
		return nil, linux.ENOPROTOOPT
	}
	return s.ask(key, size)
}

// defaultHops is the hop limit unless the program sets one.
const defaultHops = 64

// recallKept returns the stored value of an option, or its default.
func (s *Socket) recallKept(key socket.OptionName) []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	n := s.Kept(key)
	if key.Name == linux.IPV6_UNICAST_HOPS && key.Level == linux.IPPROTO_IPV6 && n <= 0 { // setting -1 selects the default
		n = defaultHops
	}
	return socket.IntValue(n)
}

// recallGiven returns the value set on this socket, or else the value inherited from the listening
// socket.
func (s *Socket) recallGiven(key socket.OptionName) []byte {
	n, set := s.Remembers(key)
	for _, o := range s.inherited {
		if o.OptionName == key && !set {
			n, _ = socket.ParseInt(o.Value)
		}
	}
	return socket.IntValue(n)
}

// ask reads an option of the host, of up to size bytes.
func (s *Socket) ask(key socket.OptionName, size int) ([]byte, linux.Errno) {
	if !s.enter() {
		return nil, linux.EBADF
	}
	defer s.leave()
	value := make([]byte, size)
	n, errno := s.host.Option(key.Level, key.Name, value)
	if errno != 0 {
		return nil, errno
	}
	return value[:n], 0
}

// SetOption implements socket.Socket. Options of the connection are set on the host, the others are stored.
func (s *Socket) SetOption(level, name int, value []byte) linux.Errno {
	key := socket.OptionName{Level: level, Name: name}
	switch {
	case s.WrongLevel(level):
		return linux.ENOPROTOOPT
	case key == inet.V6Only:
		return linux.EINVAL // as on Linux, IPV6_V6ONLY can be set only before bind(2)
	case key == inet.FastOpenConnect:
		return linux.EINVAL // as on Linux, TCP_FASTOPEN_CONNECT can be set only before connect(2)
	case key == inet.Congestion:
		has, errno := s.ask(key, hostAnswers[key])
		if errno != 0 {
			return errno
		}
		return inet.KeepCongestion(value, has)
	case hostOptions[key]:
		if !s.enter() {
			return linux.EBADF
		}
		defer s.leave()
		return s.host.SetOption(level, name, value)
	case hostLocal[key] || s.keepsHere(key):
		return s.Remember(key, value)
	case level == linux.SOL_SOCKET:
		return s.Base.SetOption(name, value)
	}
	return linux.ENOPROTOOPT
}

// TakeError implements socket.Socket.
func (s *Socket) TakeError() linux.Errno {
	b, errno := s.ask(socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_ERROR}, 4)
	if errno != 0 {
		return errno
	}
	n, _ := socket.ParseInt(b)
	return linux.Errno(n)
}

// State returns the state of the connection in Linux's numbering.
func (s *Socket) State() uint8 {
	// tcpi_state, the first byte of struct tcp_info
	b, errno := s.ask(socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_INFO}, 1)
	if errno != 0 || len(b) == 0 {
		return inet.StateClose
	}
	return b[0]
}
