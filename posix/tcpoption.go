package posix

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"loam/abi/linux"
	"loam/stack"
	"loam/stack/tcp"
)

// Options of TCP sockets: socket(7), ip(7), tcp(7).

const (
	maxInetBuffer     = 64 << 20
	defaultTCPReceive = 131072 // net.ipv4.tcp_rmem
	defaultTCPSend    = 262144
)

type tcpOpts = stack.TCPOptions

// tcpIntOptions are the int options that are stored in a connection or listener of the stack.
var tcpIntOptions = map[optionName]intOption[tcpOpts]{
	{linux.SOL_SOCKET, linux.SO_KEEPALIVE}:   flag(func(o *tcpOpts) *bool { return &o.KeepAlive }),
	{linux.SOL_SOCKET, linux.SO_REUSEADDR}:   flag(func(o *tcpOpts) *bool { return &o.ReuseAddr }),
	{linux.SOL_SOCKET, linux.SO_REUSEPORT}:   flag(func(o *tcpOpts) *bool { return &o.ReusePort }),
	{linux.SOL_SOCKET, linux.SO_OOBINLINE}:   flag(func(o *tcpOpts) *bool { return &o.UrgentInline }),
	{linux.SOL_SOCKET, linux.SO_RCVBUF}:      buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{linux.SOL_SOCKET, linux.SO_SNDBUF}:      buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),
	{linux.SOL_SOCKET, linux.SO_RCVBUFFORCE}: buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{linux.SOL_SOCKET, linux.SO_SNDBUFFORCE}: buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),

	{linux.IPPROTO_TCP, linux.TCP_CORK}: flag(func(o *tcpOpts) *bool { return &o.Cork }),
	{linux.IPPROTO_TCP, linux.TCP_KEEPIDLE}: duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveIdle },
		time.Second, 1, 32767, 2*time.Hour),
	{linux.IPPROTO_TCP, linux.TCP_KEEPINTVL}: duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveInterval },
		time.Second, 1, 32767, 75*time.Second),
	{linux.IPPROTO_TCP, linux.TCP_USER_TIMEOUT}: duration(func(o *tcpOpts) *time.Duration { return &o.UserTimeout },
		time.Millisecond, 0, 1<<31-1, 0),
	{linux.IPPROTO_TCP, linux.TCP_NODELAY}: {
		func(o *tcpOpts) int {
			if o.Delay {
				return 0
			}
			return 1
		},
		func(o *tcpOpts, n int) Errno { o.Delay = n == 0; return 0 },
	},
	{linux.IPPROTO_TCP, linux.TCP_NOTSENT_LOWAT}: {
		func(o *tcpOpts) int { return o.UnsentLow },
		func(o *tcpOpts, n int) Errno { o.UnsentLow = n; return 0 },
	},
	{linux.IPPROTO_TCP, linux.TCP_QUICKACK}: {
		func(o *tcpOpts) int {
			if o.DelayAck {
				return 0
			}
			return 1
		},
		func(o *tcpOpts, n int) Errno { o.QuickAck, o.DelayAck = n != 0, n == 0; return 0 },
	},
	{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT}: {
		func(o *tcpOpts) int { return int(o.DeferAccept / time.Second) },
		func(o *tcpOpts, n int) Errno { o.DeferAccept = deferral(n); return 0 },
	},
	{linux.IPPROTO_TCP, linux.TCP_LINGER2}: {finWait2Seconds, setFinWait2},
	{linux.IPPROTO_TCP, linux.TCP_KEEPCNT}: count(func(o *tcpOpts) *int { return &o.KeepAliveCount }, tcp.DefaultKeepAliveCount),
	{linux.IPPROTO_TCP, linux.TCP_SYNCNT}:  count(func(o *tcpOpts) *int { return &o.SynRetries }, tcp.DefaultSynRetries),

	{linux.IPPROTO_IP, linux.IP_TTL}: octet(func(o *tcpOpts) *uint8 { return &o.TTL }, 1, 64),
	{linux.IPPROTO_IP, linux.IP_TOS}: octet(func(o *tcpOpts) *uint8 { return &o.TOS }, 0, 0),

	recvErr:      flag(func(o *tcpOpts) *bool { return &o.SoftErrors }),
	recvErr6:     flag(func(o *tcpOpts) *bool { return &o.SoftErrors6 }),
	v6OnlyOption: flag(func(o *tcpOpts) *bool { return &o.V6Only }),
	{linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS}: octet(func(o *tcpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{linux.IPPROTO_IPV6, linux.IPV6_TCLASS}:       octet(func(o *tcpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// tcpHarmless are options that a program can set and read but that have no effect. TCP Fast Open is not
// supported, and the other options select what this stack does anyway.
var tcpHarmless = map[optionName]bool{
	{linux.IPPROTO_TCP, linux.TCP_FASTOPEN}: true,
	fastOpenConnect:                         true,
	mtuDiscover:                             true,
	mtuDiscover6:                            true,
	recvExtensions:                          true,
	recvExtensions6:                         true,
	{linux.IPPROTO_IP, linux.IP_FREEBIND}:   true,
	{linux.IPPROTO_IP, linux.IP_BIND_ADDRESS_NO_PORT}: true,
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

func setFinWait2(o *tcpOpts, seconds int) Errno {
	o.FinWait2 = min(time.Duration(max(seconds, -1))*time.Second, longestFinWait2)
	return 0
}

// Options that TCP sockets handle specially; connections of the host share the first two.
var (
	congestion      = optionName{linux.IPPROTO_TCP, linux.TCP_CONGESTION}
	fastOpenConnect = optionName{linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT}
	maxPacing       = optionName{linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE}
)

// longestCongestion is the maximum length of a name, in bytes (TCP_CA_NAME_MAX without the NUL).
const longestCongestion = 15

// keepCongestion handles setting TCP_CONGESTION on a connection whose algorithm cannot change. Errors:
// ENOENT for another algorithm than has, EINVAL.
func keepCongestion(value, has []byte) Errno {
	name, errno := congestionName(value)
	if errno != 0 {
		return errno
	}
	if has, _, _ = bytes.Cut(has, []byte{0}); name != string(has) {
		return linux.ENOENT
	}
	return 0
}

// congestionName parses the value of TCP_CONGESTION. A longer name is truncated.
func congestionName(value []byte) (string, Errno) {
	if len(value) == 0 {
		return "", linux.EINVAL
	}
	name, _, _ := bytes.Cut(value[:min(len(value), longestCongestion)], []byte{0})
	return string(name), 0
}

// chooseCongestion implements setting TCP_CONGESTION. Errors: ENOENT for an unknown algorithm, as on
// Linux; EINVAL.
func (s *tcpSocket) chooseCongestion(value []byte) Errno {
	name, errno := congestionName(value)
	switch {
	case errno != 0:
		return errno
	case tcp.CongestionNamed(name) == nil:
		return linux.ENOENT
	}
	return s.setOptions(func(o *tcpOpts) { o.Congestion = name })
}

// congestionValue returns the value of TCP_CONGESTION. The program's choice takes precedence, because
// the connection may not have switched to it yet.
func (s *tcpSocket) congestionValue() []byte {
	name := s.options().Congestion
	if name == "" {
		name = s.info().Congestion
	}
	return append([]byte(name), make([]byte, 16)...)[:16]
}

// noPacing is the value of SO_MAX_PACING_RATE without a limit.
const noPacing = math.MaxUint64

// setMaxPacing implements setting SO_MAX_PACING_RATE: an unsigned int or long, in bytes per second. The
// maximum of the type means no limit.
func (s *tcpSocket) setMaxPacing(value []byte) Errno {
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
func (s *tcpSocket) maxPacingValue() []byte {
	rate := s.options().MaxPacingRate
	if rate == 0 {
		rate = noPacing
	}
	return binary.NativeEndian.AppendUint64(nil, rate)
}

// deferral converts the value of TCP_DEFER_ACCEPT, in seconds. Like Linux, it rounds up to a sum of
// SYN-ACK retransmission timeouts, which double from 1 second up to two minutes.
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

func (s *tcpSocket) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	if s.wrongLevel(level) {
		return nil, linux.ENOPROTOOPT
	}
	if o, ok := tcpIntOptions[key]; ok {
		opts := s.options()
		return intValue(o.get(&opts)), 0
	}
	if tcpHarmless[key] || harmless6[key] {
		return s.recall(key), 0
	}
	switch key {
	case timestamp, timestampNS:
		return boolValue(s.isStamped(key)), 0
	case bindToDevice:
		return deviceName(s.options().Device), 0
	case pathMTU, pathMTU6:
		return pathMTUValue(s.net, s.connectedTo())
	case pathInfo6:
		return pathInfoValue(s.net, s.connectedTo())
	case optionName{linux.SOL_SOCKET, linux.SO_ACCEPTCONN}:
		return boolValue(s.listener.Load() != nil), 0
	case optionName{linux.SOL_SOCKET, linux.SO_LINGER}:
		return lingerValue(s.options()), 0
	case optionName{linux.IPPROTO_TCP, linux.TCP_MAXSEG}:
		return intValue(s.maxSegment()), 0
	case optionName{linux.IPPROTO_TCP, linux.TCP_INFO}:
		return infoValue(s.info(), s.listener.Load() != nil), 0
	case congestion:
		return s.congestionValue(), 0
	case optionName{linux.IPPROTO_TCP, linux.TCP_CC_INFO}:
		return congestionInfoValue(s.info()), 0
	case maxPacing:
		return s.maxPacingValue(), 0
	}
	if level == linux.SOL_SOCKET {
		return s.socketBase.option(name)
	}
	return nil, linux.ENOPROTOOPT
}

// connectedTo returns the peer of an open connection, or the zero AddrPort.
func (s *tcpSocket) connectedTo() netip.AddrPort {
	if c := s.conn.Load(); c != nil && c.Connected() {
		return c.RemoteAddrPort()
	}
	return netip.AddrPort{}
}

func (s *tcpSocket) setOption(level, name int, value []byte) Errno {
	errno := s.setOwnOption(level, name, value)
	if errno == 0 {
		s.keepGiven(level, name, value)
	}
	return errno
}

func (s *tcpSocket) setOwnOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	switch {
	case s.wrongLevel(level):
		return linux.ENOPROTOOPT
	case key == v6OnlyOption && s.local().IP.Port() != 0:
		return linux.EINVAL
	case key == mtuDiscover || key == mtuDiscover6:
		if n, errno := parseInt(value); errno != 0 || n < 0 || n > lastDiscovery {
			return linux.EINVAL
		}
		return s.remember(key, value)
	case key == optionName{linux.SOL_SOCKET, linux.SO_LINGER}:
		return s.setLinger(value)
	case key == optionName{linux.IPPROTO_TCP, linux.TCP_MAXSEG}:
		return s.setMaxSegment(value)
	case key == congestion:
		return s.chooseCongestion(value)
	case key == maxPacing:
		return s.setMaxPacing(value)
	case key == fastOpenConnect:
		if n, errno := parseInt(value); errno != 0 || n&^1 != 0 || s.conn.Load() != nil || s.listener.Load() != nil {
			return linux.EINVAL
		}
		return s.remember(key, value)
	case key == timestamp || key == timestampNS:
		return s.setStamped(key, value)
	case key == bindToDevice:
		return s.bindToDevice(value)
	}
	if o, ok := tcpIntOptions[key]; ok {
		n, errno := parseInt(value)
		if errno != 0 {
			return errno
		}
		bad := s.setOptions(func(opts *tcpOpts) { errno = o.set(opts, n) })
		if errno != 0 {
			return errno
		}
		return bad
	}
	if tcpHarmless[key] || harmless6[key] {
		return s.remember(key, value)
	}
	if level == linux.SOL_SOCKET {
		return s.socketBase.setOption(name, value)
	}
	return linux.ENOPROTOOPT
}

func (s *tcpSocket) setLinger(value []byte) Errno {
	if len(value) < 8 {
		return linux.EINVAL
	}
	on := binary.NativeEndian.Uint32(value) != 0
	seconds := int32(binary.NativeEndian.Uint32(value[4:]))
	return s.setOptions(func(o *tcpOpts) {
		o.Linger, o.LingerTime = on, time.Duration(max(seconds, 0))*time.Second
	})
}

// Limits of TCP_MAXSEG (tcp_min_snd_mss, MAX_TCP_WINDOW).
const leastMaxSegment, mostMaxSegment = 88, 32767

func (s *tcpSocket) setMaxSegment(value []byte) Errno {
	n, errno := parseInt(value)
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
func (s *tcpSocket) maxSegment() int {
	if n := s.options().MaxSegment; n != 0 && s.conn.Load() == nil {
		return n
	}
	return s.info().SndMSS
}

// lingerValue encodes a struct linger.
func lingerValue(o tcpOpts) []byte {
	b := boolValue(o.Linger)
	return binary.NativeEndian.AppendUint32(b, uint32(o.LingerTime/time.Second))
}

// info returns information on the connection; without one, the values of a closed connection.
func (s *tcpSocket) info() tcp.Info {
	if c := s.conn.Load(); c != nil {
		return c.Info()
	}
	return tcp.Info{State: tcp.Closed, SndMSS: 536, PathMSS: 536, Congestion: "cubic"}
}
