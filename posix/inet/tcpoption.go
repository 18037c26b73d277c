package inet

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/tcp"
	"loam/stack/tcp/congestion"
)

// Options of TCP sockets: socket(7), ip(7), tcp(7).

const (
	defaultTCPReceive = 131072 // second value of net.ipv4.tcp_rmem
	defaultTCPSend    = 262144
)

type tcpOpts = stack.TCPOptions

// tcpIntOptions are the options with an int value that are fields of stack.TCPOptions.
var tcpIntOptions = map[socket.OptionName]socket.IntOption[tcpOpts]{
	{Level: linux.SOL_SOCKET, Name: linux.SO_KEEPALIVE}:   socket.Flag(func(o *tcpOpts) *bool { return &o.KeepAlive }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEADDR}:   socket.Flag(func(o *tcpOpts) *bool { return &o.ReuseAddr }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_REUSEPORT}:   socket.Flag(func(o *tcpOpts) *bool { return &o.ReusePort }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_OOBINLINE}:   socket.Flag(func(o *tcpOpts) *bool { return &o.UrgentInline }),
	{Level: linux.SOL_SOCKET, Name: linux.SO_RCVBUF}:      socket.Buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUF}:      socket.Buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),
	{Level: linux.SOL_SOCKET, Name: linux.SO_RCVBUFFORCE}: socket.Buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUFFORCE}: socket.Buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),

	{Level: linux.IPPROTO_TCP, Name: linux.TCP_CORK}: socket.Flag(func(o *tcpOpts) *bool { return &o.Cork }),
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPIDLE}: socket.Duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveIdle },
		time.Second, 1, 32767, 2*time.Hour),
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPINTVL}: socket.Duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveInterval },
		time.Second, 1, 32767, 75*time.Second),
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_USER_TIMEOUT}: socket.Duration(func(o *tcpOpts) *time.Duration { return &o.UserTimeout },
		time.Millisecond, 0, 1<<31-1, 0),
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_NODELAY}: {
		Get: func(o *tcpOpts) int {
			if o.Delay {
				return 0
			}
			return 1
		},
		Set: func(o *tcpOpts, n int) linux.Errno { o.Delay = n == 0; return 0 },
	},
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_NOTSENT_LOWAT}: {
		Get: func(o *tcpOpts) int { return o.UnsentLow },
		Set: func(o *tcpOpts, n int) linux.Errno { o.UnsentLow = n; return 0 },
	},
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_QUICKACK}: {
		Get: func(o *tcpOpts) int {
			if o.DelayAck {
				return 0
			}
			return 1
		},
		Set: func(o *tcpOpts, n int) linux.Errno { o.QuickAck, o.DelayAck = n != 0, n == 0; return 0 },
	},
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_DEFER_ACCEPT}: {
		Get: func(o *tcpOpts) int { return int(o.DeferAccept / time.Second) },
		Set: func(o *tcpOpts, n int) linux.Errno { o.DeferAccept = deferral(n); return 0 },
	},
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_LINGER2}: {Get: finWait2Seconds, Set: setFinWait2},
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_KEEPCNT}: socket.Count(func(o *tcpOpts) *int { return &o.KeepAliveCount }, tcp.DefaultKeepAliveCount),
	{Level: linux.IPPROTO_TCP, Name: linux.TCP_SYNCNT}:  socket.Count(func(o *tcpOpts) *int { return &o.SynRetries }, tcp.DefaultSynRetries),

	{Level: linux.IPPROTO_IP, Name: linux.IP_TTL}: socket.Octet(func(o *tcpOpts) *uint8 { return &o.TTL }, 1, 64),
	{Level: linux.IPPROTO_IP, Name: linux.IP_TOS}: socket.LowByte(func(o *tcpOpts) *uint8 { return &o.TOS }),

	recvErr:  socket.Flag(func(o *tcpOpts) *bool { return &o.SoftErrors }),
	recvErr6: socket.Flag(func(o *tcpOpts) *bool { return &o.SoftErrors6 }),
	V6Only:   socket.Flag(func(o *tcpOpts) *bool { return &o.V6Only }),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_UNICAST_HOPS}: socket.Octet(func(o *tcpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_TCLASS}:       socket.Octet(func(o *tcpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// tcpHarmless are options that a program can set and read, and that have no effect, because they select the only behaviour of this
// stack. The value is true for options that read as 0 or 1.
var tcpHarmless = map[socket.OptionName]bool{
	socket.MTUDiscover:  false,
	socket.MTUDiscover6: false,
	recvExtensions:      true,
	recvExtensions6:     true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_FREEBIND}:             true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_BIND_ADDRESS_NO_PORT}: true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_PKTINFO}:              true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RECVOPTS}:             true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RETOPTS}:              true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RECVTTL}:              true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_RECVTOS}:              true,
	{Level: linux.IPPROTO_IP, Name: linux.IP_ORIGDSTADDR}:          true,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVPKTINFO}:      true,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVHOPLIMIT}:     true,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVTCLASS}:       true,
}

// longestFinWait2 is Linux's TCP_FIN_TIMEOUT_MAX.
const longestFinWait2 = 2 * time.Minute

// finWait2Seconds returns the value of TCP_LINGER2. The default is net.ipv4.tcp_fin_timeout.
func finWait2Seconds(o *tcpOpts) int {
	switch d := o.FinWait2; {
	case d < 0:
		return -1
	case d == 0:
		return int(tcp.DefaultFinWait2 / time.Second)
	default:
		return int(d / time.Second)
	}
}

func setFinWait2(o *tcpOpts, seconds int) linux.Errno {
	o.FinWait2 = min(time.Duration(max(seconds, -1))*time.Second, longestFinWait2)
	return 0
}

// Options that need code of their own. Handed-over connections of the host (posix/handed) use the first two as well.
var (
	Congestion      = socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_CONGESTION}
	FastOpenConnect = socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_FASTOPEN_CONNECT}
	maxPacing       = socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_MAX_PACING_RATE}
)

// defaultCongestion is the congestion control of the stack's connections.
const defaultCongestion = "cubic"

// LongestCongestion is the maximum length of the name of a congestion control, in bytes (TCP_CA_NAME_MAX without the NUL).
const LongestCongestion = 15

// KeepCongestion handles setting TCP_CONGESTION on a connection that cannot change its
// congestion control. value is the option's value, and has is the name of the present
// control. Errors: ENOENT if they differ, EINVAL.
func KeepCongestion(value, has []byte) linux.Errno {
	name, errno := congestionName(value)
	if errno != 0 {
		return errno
	}
	if has, _, _ = bytes.Cut(has, []byte{0}); name != string(has) {
		return linux.ENOENT
	}
	return 0
}

// congestionName returns the name in the value of TCP_CONGESTION, truncated to LongestCongestion bytes.
func congestionName(value []byte) (string, linux.Errno) {
	if len(value) == 0 {
		return "", linux.EINVAL
	}
	name, _, _ := bytes.Cut(value[:min(len(value), LongestCongestion)], []byte{0})
	return string(name), 0
}

// chooseCongestion implements setting TCP_CONGESTION. Errors: ENOENT for an unknown algorithm, as on
// Linux; EINVAL.
func (s *TCPSocket) chooseCongestion(value []byte) linux.Errno {
	name, errno := congestionName(value)
	switch {
	case errno != 0:
		return errno
	case congestion.Named(name) == nil:
		return linux.ENOENT
	}
	return s.setOptions(func(o *tcpOpts) { o.Congestion = name })
}

// congestionValue returns the value of TCP_CONGESTION: the name that the program has set, or else the name that the
// connection uses. A connection may switch to a new congestion control later.
func (s *TCPSocket) congestionValue() []byte {
	name := s.options().Congestion
	if name == "" {
		name = s.info().Congestion
	}
	return append([]byte(name), make([]byte, 16)...)[:16]
}

// noPacing is the value of SO_MAX_PACING_RATE that means no limit.
const noPacing = math.MaxUint64

// setMaxPacing implements setting SO_MAX_PACING_RATE: an unsigned int or long, in bytes per second. The
// maximum of the type means no limit.
func (s *TCPSocket) setMaxPacing(value []byte) linux.Errno {
	var rate uint64
	switch {
	case len(value) >= 8:
		rate = binary.NativeEndian.Uint64(value)
	case len(value) >= 4:
		rate = uint64(binary.NativeEndian.Uint32(value))
	default:
		return linux.EINVAL
	}
	if rate == noPacing || len(value) < 8 && rate == math.MaxUint32 {
		rate = 0
	}
	return s.setOptions(func(o *tcpOpts) { o.MaxPacingRate = rate })
}

// maxPacingValue returns the value of SO_MAX_PACING_RATE as a long.
func (s *TCPSocket) maxPacingValue() []byte {
	rate := s.options().MaxPacingRate
	if rate == 0 {
		rate = noPacing
	}
	return binary.NativeEndian.AppendUint64(nil, rate)
}

// deferral converts the value of TCP_DEFER_ACCEPT in seconds to a duration. Like Linux, it rounds up to the next sum of
// SYN-ACK retransmission timeouts, which start at 1 second and double up to two minutes.
func deferral(seconds int) time.Duration {
	const first, longest = 1, 120
	if seconds <= 0 {
		return 0
	}
	all := first
	for next := 2 * first; all < seconds && all < longest*math.MaxUint8; next = min(2*next, longest) {
		all += next
	}
	return time.Duration(all) * time.Second
}

func (s *TCPSocket) Option(level, name int) ([]byte, linux.Errno) {
	key := socket.OptionName{Level: level, Name: name}
	if s.WrongLevel(level) {
		return nil, s.NoOption(level)
	}
	if o, ok := tcpIntOptions[key]; ok {
		opts := s.options()
		return socket.IntValue(o.Get(&opts)), 0
	}
	if _, ok := harmless(tcpHarmless, key); ok {
		return s.Recall(key), 0
	}
	if value, ok := s.groupOption(key); ok {
		return value, 0
	}
	if value, ok := s.fastOption(key); ok {
		return value, 0
	}
	switch key {
	case timestamp, timestampNS:
		return socket.BoolValue(s.isStamped(key)), 0
	case bindToDevice:
		return netdevice.OptionValue(s.options().Device), 0
	case pathMTU, pathMTU6:
		return pathMTUValue(s.net, s.connectedTo())
	case pathInfo6:
		return pathInfoValue(s.net, s.connectedTo())
	case socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_ACCEPTCONN}:
		return socket.BoolValue(s.listener.Load() != nil), 0
	case socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_LINGER}:
		return lingerValue(s.options()), 0
	case socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_MAXSEG}:
		return socket.IntValue(s.maxSegment()), 0
	case socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_INFO}:
		return infoValue(s.info(), s.listener.Load() != nil), 0
	case Congestion:
		return s.congestionValue(), 0
	case socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_CC_INFO}:
		return congestionInfoValue(s.info()), 0
	case maxPacing:
		return s.maxPacingValue(), 0
	}
	if level == linux.SOL_SOCKET {
		return s.Base.Option(name)
	}
	return nil, s.NoOption(level)
}

// connectedTo returns the peer of an open connection, or the zero AddrPort.
func (s *TCPSocket) connectedTo() netip.AddrPort {
	if c := s.conn.Load(); c != nil && c.Connected() {
		return c.RemoteAddrPort()
	}
	return netip.AddrPort{}
}

func (s *TCPSocket) SetOption(level, name int, value []byte) linux.Errno {
	errno := s.setOwnOption(level, name, value)
	if errno == 0 {
		s.keepGiven(level, name, value)
	}
	return errno
}

func (s *TCPSocket) setOwnOption(level, name int, value []byte) linux.Errno {
	key := socket.OptionName{Level: level, Name: name}
	switch {
	case s.WrongLevel(level):
		return linux.ENOPROTOOPT
	case key == V6Only && s.Local().IP.Port() != 0:
		return linux.EINVAL
	case key == socket.MTUDiscover || key == socket.MTUDiscover6:
		if n, errno := socket.ParseInt(value); errno != 0 || n < 0 || n > lastDiscovery {
			return linux.EINVAL
		}
		return s.Remember(key, value)
	case key == socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_LINGER}:
		return s.setLinger(value)
	case key == socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_MAXSEG}:
		return s.setMaxSegment(value)
	case key == Congestion:
		return s.chooseCongestion(value)
	case key == maxPacing:
		return s.setMaxPacing(value)
	case key == FastOpenConnect || key == fastOpen || key == fastOpenKey || key == fastOpenNoCookie:
		return s.setFast(key, value)
	case key == timestamp || key == timestampNS:
		return s.setStamped(key, value)
	case key == bindToDevice:
		return s.bindToDevice(value)
	}
	if o, ok := tcpIntOptions[key]; ok {
		n, errno := socket.ParseInt(value)
		if errno != 0 {
			return errno
		}
		bad := s.setOptions(func(opts *tcpOpts) { errno = o.Set(opts, n) })
		if errno != 0 {
			return errno
		}
		return bad
	}
	if isTruth, ok := harmless(tcpHarmless, key); ok {
		return s.rememberHarmless(key, isTruth, value)
	}
	if errno, ok := s.setGroupOption(key, value); ok {
		return errno
	}
	if level == linux.SOL_SOCKET {
		return s.Base.SetOption(name, value)
	}
	return linux.ENOPROTOOPT
}

func (s *TCPSocket) setLinger(value []byte) linux.Errno {
	var l socket.Linger
	if errno := l.Set(value); errno != 0 {
		return errno
	}
	return s.setOptions(func(o *tcpOpts) {
		if o.Linger = l.On; l.On {
			o.LingerTime = time.Duration(l.Seconds) * time.Second
		}
	})
}

// Limits of TCP_MAXSEG (tcp_min_snd_mss, MAX_TCP_WINDOW).
const leastMaxSegment, mostMaxSegment = 88, 32767

func (s *TCPSocket) setMaxSegment(value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	if n != 0 && (n < leastMaxSegment || n > mostMaxSegment) {
		return linux.EINVAL
	}
	return s.setOptions(func(o *tcpOpts) { o.MaxSegment = n })
}

// maxSegment returns the connection's segment size. Without a connection it returns the value set by
// the program.
func (s *TCPSocket) maxSegment() int {
	if n := s.options().MaxSegment; n != 0 && s.conn.Load() == nil {
		return n
	}
	return s.info().SndMSS
}

// lingerValue encodes a struct linger.
func lingerValue(o tcpOpts) []byte {
	l := socket.Linger{On: o.Linger, Seconds: uint32(o.LingerTime / time.Second)}
	return l.Value()
}

// info returns information about the connection. If the socket has no connection, it returns the values of a closed one.
func (s *TCPSocket) info() tcp.Info {
	if c := s.conn.Load(); c != nil {
		return c.Info()
	}
	return tcp.Info{State: tcp.Closed, SndMSS: 536, PathMSS: 536, Congestion: defaultCongestion}
}

// HasNoEffect reports whether an option can be set and read on a connection of the host (posix/handed) without having an
// effect.
func HasNoEffect(key socket.OptionName) bool {
	_, ok := harmless(tcpHarmless, key)
	return ok || key == fastOpen || key == FastOpenConnect || key == recvErr || key == recvErr6
}
