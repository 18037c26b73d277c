package posix

import "syscall"

// Options of TCP sockets whose connection is the host's: the same as of Loam's
// (tcpoption.go), but what there concerns the connection is asked of the host here. The
// seal of a process lets these through and no others (unikernel/seal).

// hostOptions are those of the host that may be set and read.
var hostOptions = map[optionName]bool{
	{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: true,
	{syscall.SOL_SOCKET, syscall.SO_OOBINLINE}: true,
	{syscall.SOL_SOCKET, syscall.SO_RCVBUF}:    true,
	{syscall.SOL_SOCKET, syscall.SO_SNDBUF}:    true,
	{syscall.SOL_SOCKET, syscall.SO_LINGER}:    true,

	{syscall.IPPROTO_TCP, syscall.TCP_NODELAY}:   true,
	{syscall.IPPROTO_TCP, syscall.TCP_CORK}:      true,
	{syscall.IPPROTO_TCP, syscall.TCP_QUICKACK}:  true,
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE}:  true,
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}: true,
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT}:   true,
	{syscall.IPPROTO_TCP, syscall.TCP_LINGER2}:   true,
	{syscall.IPPROTO_TCP, tcpUserTimeout}:        true,

	{syscall.IPPROTO_IP, syscall.IP_TTL}: true,
	{syscall.IPPROTO_IP, syscall.IP_TOS}: true,
}

// hostAnswers are those that may only be read, and how long the answer may be, in bytes.
var hostAnswers = map[optionName]int{
	{syscall.SOL_SOCKET, syscall.SO_ERROR}:    4,
	{syscall.IPPROTO_TCP, syscall.TCP_MAXSEG}: 4,
	{syscall.IPPROTO_TCP, syscall.TCP_INFO}:   512,
	congestion:                                16,
}

// hostLocal are those that mean something to listeners only, and are kept.
var hostLocal = map[optionName]bool{
	{syscall.SOL_SOCKET, syscall.SO_REUSEADDR}: true,
	{syscall.SOL_SOCKET, soReusePort}:          true,
	v6OnlyOption:                               true,

	{syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT}: true,
}

// keepsHere reports whether an option may be set and read back, and does nothing: the
// host's connection is one of IPv4.
func (s *hostTCP) keepsHere(key optionName) bool {
	if key.level == syscall.IPPROTO_IPV6 && (key.name == syscall.IPV6_UNICAST_HOPS || key.name == ipv6TClass) {
		return true
	}
	return tcpHarmless[key] || harmless6[key] || key == recvErr || key == recvErr6
}

func (s *hostTCP) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	size, ok := hostAnswers[key]
	switch {
	case s.wrongLevel(level):
		return nil, syscall.ENOPROTOOPT
	case ok:
	case hostOptions[key]:
		size = 8 // a struct linger
	case hostLocal[key]:
		return s.recallGiven(key), 0
	case s.keepsHere(key):
		return s.recallKept(key), 0
	case key == optionName{syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN}:
		return boolValue(false), 0
	case level == syscall.SOL_SOCKET:
		return s.socketBase.option(name)
	default:
		return nil, syscall.ENOPROTOOPT
	}
	return s.ask(key, size)
}

// defaultHops is the hop limit of who has set none.
const defaultHops = 64

// recallKept is what was set, or what the option is without.
func (s *hostTCP) recallKept(key optionName) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.kept(key)
	if key.name == syscall.IPV6_UNICAST_HOPS && key.level == syscall.IPPROTO_IPV6 && n <= 0 { // -1 means the default, too
		n = defaultHops
	}
	return intValue(n)
}

// recallGiven is what the listening socket was given, unless this one was given another.
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
		return nil, syscall.EBADF
	}
	defer s.leave()
	value := make([]byte, size)
	n, errno := s.host.Option(key.level, key.name, value)
	if errno != 0 {
		return nil, errno
	}
	return value[:n], 0
}

func (s *hostTCP) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	switch {
	case s.wrongLevel(level):
		return syscall.ENOPROTOOPT
	case key == v6OnlyOption:
		return syscall.EINVAL // only before there is a port
	case key == fastOpenConnect:
		return syscall.EINVAL // only before there is a connection
	case key == congestion:
		has, errno := s.ask(key, hostAnswers[key])
		if errno != 0 {
			return errno
		}
		return chooseCongestion(value, has)
	case hostOptions[key]:
		if !s.enter() {
			return syscall.EBADF
		}
		defer s.leave()
		return s.host.SetOption(level, name, value)
	case hostLocal[key] || s.keepsHere(key):
		return s.remember(key, value)
	case level == syscall.SOL_SOCKET:
		return s.socketBase.setOption(name, value)
	}
	return syscall.ENOPROTOOPT
}

// takeError implements socket.
func (s *hostTCP) takeError() Errno {
	b, errno := s.ask(optionName{syscall.SOL_SOCKET, syscall.SO_ERROR}, 4)
	if errno != 0 {
		return errno
	}
	n, _ := parseInt(b)
	return Errno(n)
}

// linuxState is the state of the connection as Linux numbers it.
func (s *hostTCP) linuxState() uint8 {
	b, errno := s.ask(optionName{syscall.IPPROTO_TCP, syscall.TCP_INFO}, 1) // the first field of struct tcp_info
	if errno != 0 || len(b) == 0 {
		return linuxClose
	}
	return b[0]
}
