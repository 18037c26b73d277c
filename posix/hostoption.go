package posix

import "loam/abi/linux"

// Options of TCP sockets whose connection belongs to the host. They are those of Loam's own sockets
// (tcpoption.go), but options of the connection are forwarded to the host. The seal of a process allows
// these options only (unikernel/seal).

// hostOptions are the options of the host that may be set and read.
var hostOptions = map[optionName]bool{
	{linux.SOL_SOCKET, linux.SO_KEEPALIVE}: true,
	{linux.SOL_SOCKET, linux.SO_OOBINLINE}: true,
	{linux.SOL_SOCKET, linux.SO_RCVBUF}:    true,
	{linux.SOL_SOCKET, linux.SO_SNDBUF}:    true,
	{linux.SOL_SOCKET, linux.SO_LINGER}:    true,

	{linux.IPPROTO_TCP, linux.TCP_NODELAY}:      true,
	{linux.IPPROTO_TCP, linux.TCP_CORK}:         true,
	{linux.IPPROTO_TCP, linux.TCP_QUICKACK}:     true,
	{linux.IPPROTO_TCP, linux.TCP_KEEPIDLE}:     true,
	{linux.IPPROTO_TCP, linux.TCP_KEEPINTVL}:    true,
	{linux.IPPROTO_TCP, linux.TCP_KEEPCNT}:      true,
	{linux.IPPROTO_TCP, linux.TCP_LINGER2}:      true,
	{linux.IPPROTO_TCP, linux.TCP_USER_TIMEOUT}: true,

	{linux.IPPROTO_IP, linux.IP_TTL}: true,
	{linux.IPPROTO_IP, linux.IP_TOS}: true,
}

// hostAnswers are the options of the host that may only be read, with the maximum size of the value in
// bytes.
var hostAnswers = map[optionName]int{
	{linux.SOL_SOCKET, linux.SO_ERROR}:    4,
	{linux.IPPROTO_TCP, linux.TCP_MAXSEG}: 4,
	{linux.IPPROTO_TCP, linux.TCP_INFO}:   512,
	congestion:                            16,
}

// hostLocal are options that only matter to listeners. They are stored and have no effect.
var hostLocal = map[optionName]bool{
	{linux.SOL_SOCKET, linux.SO_REUSEADDR}: true,
	{linux.SOL_SOCKET, linux.SO_REUSEPORT}: true,
	v6OnlyOption:                           true,

	{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT}: true,
}

// keepsHere reports whether an option can be set and read but has no effect, because the host's
// connection uses IPv4.
func (s *hostTCP) keepsHere(key optionName) bool {
	if key.level == linux.IPPROTO_IPV6 && (key.name == linux.IPV6_UNICAST_HOPS || key.name == linux.IPV6_TCLASS) {
		return true
	}
	return tcpHarmless[key] || harmless6[key] || key == recvErr || key == recvErr6
}

// option implements socket. Options of the connection are read from the host, the others from the
// stored values.
func (s *hostTCP) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	size, ok := hostAnswers[key]
	switch {
	case s.wrongLevel(level):
		return nil, linux.ENOPROTOOPT
	case ok:
	case hostOptions[key]:
		size = 8 // a struct linger
	case hostLocal[key]:
		return s.recallGiven(key), 0
	case s.keepsHere(key):
		return s.recallKept(key), 0
	case key == optionName{linux.SOL_SOCKET, linux.SO_ACCEPTCONN}:
		return boolValue(false), 0
	case level == linux.SOL_SOCKET:
		return s.socketBase.option(name)
	default:
		return nil, linux.ENOPROTOOPT
	}
	return s.ask(key, size)
}

// defaultHops is the hop limit unless the program sets one.
const defaultHops = 64

// recallKept returns the stored value of an option, or its default.
func (s *hostTCP) recallKept(key optionName) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.kept(key)
	if key.name == linux.IPV6_UNICAST_HOPS && key.level == linux.IPPROTO_IPV6 && n <= 0 { // -1 means the default, too
		n = defaultHops
	}
	return intValue(n)
}

// recallGiven returns the value set on this socket, or else the value inherited from the listening
// socket.
func (s *hostTCP) recallGiven(key optionName) []byte {
	s.mu.Lock()
	n, set := s.remembered[key]
	s.mu.Unlock()
	for _, o := range s.inherited {
		if o.optionName == key && !set {
			n, _ = parseInt(o.value)
		}
	}
	return intValue(n)
}

// ask reads an option of the host, of up to size bytes.
func (s *hostTCP) ask(key optionName, size int) ([]byte, Errno) {
	if !s.enter() {
		return nil, linux.EBADF
	}
	defer s.leave()
	value := make([]byte, size)
	n, errno := s.host.Option(key.level, key.name, value)
	if errno != 0 {
		return nil, errno
	}
	return value[:n], 0
}

// setOption implements socket. Options of the connection are set on the host, the others are stored.
func (s *hostTCP) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	switch {
	case s.wrongLevel(level):
		return linux.ENOPROTOOPT
	case key == v6OnlyOption:
		return linux.EINVAL // only before the socket has a port
	case key == fastOpenConnect:
		return linux.EINVAL // only before the socket is connected
	case key == congestion:
		has, errno := s.ask(key, hostAnswers[key])
		if errno != 0 {
			return errno
		}
		return keepCongestion(value, has)
	case hostOptions[key]:
		if !s.enter() {
			return linux.EBADF
		}
		defer s.leave()
		return s.host.SetOption(level, name, value)
	case hostLocal[key] || s.keepsHere(key):
		return s.remember(key, value)
	case level == linux.SOL_SOCKET:
		return s.socketBase.setOption(name, value)
	}
	return linux.ENOPROTOOPT
}

// takeError implements socket.
func (s *hostTCP) takeError() Errno {
	b, errno := s.ask(optionName{linux.SOL_SOCKET, linux.SO_ERROR}, 4)
	if errno != 0 {
		return errno
	}
	n, _ := parseInt(b)
	return Errno(n)
}

// linuxState returns the state of the connection in Linux's numbering.
func (s *hostTCP) linuxState() uint8 {
	b, errno := s.ask(optionName{linux.IPPROTO_TCP, linux.TCP_INFO}, 1) // the first field of struct tcp_info
	if errno != 0 || len(b) == 0 {
		return linuxClose
	}
	return b[0]
}
