package posix

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"syscall"
	"time"

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

// tcpIntOptions are the options that are kept with a connection or listener.
var tcpIntOptions = map[optionName]intOption[tcpOpts]{
	{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}: flag(func(o *tcpOpts) *bool { return &o.KeepAlive }),
	{syscall.SOL_SOCKET, syscall.SO_REUSEADDR}: flag(func(o *tcpOpts) *bool { return &o.ReuseAddr }),
	{syscall.SOL_SOCKET, soReusePort}:          flag(func(o *tcpOpts) *bool { return &o.ReusePort }),
	{syscall.SOL_SOCKET, syscall.SO_OOBINLINE}: flag(func(o *tcpOpts) *bool { return &o.UrgentInline }),
	{syscall.SOL_SOCKET, syscall.SO_RCVBUF}:    buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{syscall.SOL_SOCKET, syscall.SO_SNDBUF}:    buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),
	{syscall.SOL_SOCKET, soRcvBufForce}:        buffer(func(o *tcpOpts) *int { return &o.ReceiveBuffer }, defaultTCPReceive),
	{syscall.SOL_SOCKET, soSndBufForce}:        buffer(func(o *tcpOpts) *int { return &o.SendBuffer }, defaultTCPSend),

	{syscall.IPPROTO_TCP, syscall.TCP_CORK}: flag(func(o *tcpOpts) *bool { return &o.Cork }),
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE}: duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveIdle },
		time.Second, 1, 32767, 2*time.Hour),
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}: duration(func(o *tcpOpts) *time.Duration { return &o.KeepAliveInterval },
		time.Second, 1, 32767, 75*time.Second),
	{syscall.IPPROTO_TCP, tcpUserTimeout}: duration(func(o *tcpOpts) *time.Duration { return &o.UserTimeout },
		time.Millisecond, 0, 1<<31-1, 0),
	{syscall.IPPROTO_TCP, syscall.TCP_NODELAY}: {
		func(o *tcpOpts) int {
			if o.Delay {
				return 0
			}
			return 1
		},
		func(o *tcpOpts, n int) Errno { o.Delay = n == 0; return 0 },
	},
	{syscall.IPPROTO_TCP, tcpNotSentLowat}: {
		func(o *tcpOpts) int { return o.UnsentLow },
		func(o *tcpOpts, n int) Errno { o.UnsentLow = n; return 0 },
	},
	{syscall.IPPROTO_TCP, syscall.TCP_QUICKACK}: {
		func(o *tcpOpts) int {
			if o.DelayAck {
				return 0
			}
			return 1
		},
		func(o *tcpOpts, n int) Errno { o.QuickAck, o.DelayAck = n != 0, n == 0; return 0 },
	},
	{syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT}: {
		func(o *tcpOpts) int { return int(o.DeferAccept / time.Second) },
		func(o *tcpOpts, n int) Errno { o.DeferAccept = deferral(n); return 0 },
	},
	{syscall.IPPROTO_TCP, syscall.TCP_LINGER2}: {finWait2Seconds, setFinWait2},
	{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT}: count(func(o *tcpOpts) *int { return &o.KeepAliveCount }, tcp.DefaultKeepAliveCount),
	{syscall.IPPROTO_TCP, syscall.TCP_SYNCNT}:  count(func(o *tcpOpts) *int { return &o.SynRetries }, tcp.DefaultSynRetries),

	{syscall.IPPROTO_IP, syscall.IP_TTL}: octet(func(o *tcpOpts) *uint8 { return &o.TTL }, 1, 64),
	{syscall.IPPROTO_IP, syscall.IP_TOS}: octet(func(o *tcpOpts) *uint8 { return &o.TOS }, 0, 0),

	recvErr:      flag(func(o *tcpOpts) *bool { return &o.SoftErrors }),
	recvErr6:     flag(func(o *tcpOpts) *bool { return &o.SoftErrors6 }),
	v6OnlyOption: flag(func(o *tcpOpts) *bool { return &o.V6Only }),
	{syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS}: octet(func(o *tcpOpts) *uint8 { return &o.HopLimit }, 1, 64),
	{syscall.IPPROTO_IPV6, ipv6TClass}:                octet(func(o *tcpOpts) *uint8 { return &o.TrafficClass }, 0, 0),
}

// tcpHarmless are options that a program may set and read back although they
// change nothing: fast open is not used, and the rest is how this stack works anyway.
var tcpHarmless = map[optionName]bool{
	{syscall.IPPROTO_TCP, tcpFastOpen}: true,
	fastOpenConnect:                    true,
	mtuDiscover:                        true,
	mtuDiscover6:                       true,
	recvExtensions:                     true,
	recvExtensions6:                    true,
	{syscall.IPPROTO_IP, syscall.IP_FREEBIND}: true,
	{syscall.IPPROTO_IP, ipBindAddressNoPort}: true,
}

// longestFinWait2 is TCP_FIN_TIMEOUT_MAX of Linux.
const longestFinWait2 = 2 * time.Minute

// finWait2Seconds is what TCP_LINGER2 reads as: net.ipv4.tcp_fin_timeout if it was not set.
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

// TCP_CONGESTION and TCP_FASTOPEN_CONNECT, of both kinds of TCP sockets.
var (
	congestion      = optionName{syscall.IPPROTO_TCP, syscall.TCP_CONGESTION}
	fastOpenConnect = optionName{syscall.IPPROTO_TCP, tcpFastOpenConnect}
)

// longestCongestion is how much of a name counts, in bytes (TCP_CA_NAME_MAX, without its end).
const longestCongestion = 15

// chooseCongestion is setsockopt of TCP_CONGESTION: a connection keeps the algorithm that it has,
// and of others there are none, as on a Linux without their modules.
func chooseCongestion(value, has []byte) Errno {
	if len(value) == 0 {
		return syscall.EINVAL
	}
	name, _, _ := bytes.Cut(value[:min(len(value), longestCongestion)], []byte{0})
	has, _, _ = bytes.Cut(has, []byte{0})
	if !bytes.Equal(name, has) {
		return syscall.ENOENT
	}
	return 0
}

// deferral is how long TCP_DEFER_ACCEPT of so many seconds is: Linux counts in times that it
// would answer a SYN again, each twice as long after the last, up to two minutes.
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
		return nil, syscall.ENOPROTOOPT
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
	case optionName{syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN}:
		return boolValue(s.listener.Load() != nil), 0
	case optionName{syscall.SOL_SOCKET, syscall.SO_LINGER}:
		return lingerValue(s.options()), 0
	case optionName{syscall.IPPROTO_TCP, syscall.TCP_MAXSEG}:
		return intValue(s.maxSegment()), 0
	case optionName{syscall.IPPROTO_TCP, syscall.TCP_INFO}:
		return infoValue(s.info(), s.listener.Load() != nil), 0
	case congestion:
		return append([]byte(s.info().Congestion), make([]byte, 16)...)[:16], 0
	}
	if level == syscall.SOL_SOCKET {
		return s.socketBase.option(name)
	}
	return nil, syscall.ENOPROTOOPT
}

// connectedTo is the peer of a connection that is open, else the zero AddrPort.
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
		return syscall.ENOPROTOOPT
	case key == v6OnlyOption && s.local().IP.Port() != 0:
		return syscall.EINVAL
	case key == mtuDiscover || key == mtuDiscover6:
		if n, errno := parseInt(value); errno != 0 || n < 0 || n > lastDiscovery {
			return syscall.EINVAL
		}
		return s.remember(key, value)
	case key == optionName{syscall.SOL_SOCKET, syscall.SO_LINGER}:
		return s.setLinger(value)
	case key == optionName{syscall.IPPROTO_TCP, syscall.TCP_MAXSEG}:
		return s.setMaxSegment(value)
	case key == congestion:
		return chooseCongestion(value, []byte(s.info().Congestion))
	case key == fastOpenConnect:
		if n, errno := parseInt(value); errno != 0 || n&^1 != 0 || s.conn.Load() != nil || s.listener.Load() != nil {
			return syscall.EINVAL
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
	if level == syscall.SOL_SOCKET {
		return s.socketBase.setOption(name, value)
	}
	return syscall.ENOPROTOOPT
}

func (s *tcpSocket) setLinger(value []byte) Errno {
	if len(value) < 8 {
		return syscall.EINVAL
	}
	on := binary.NativeEndian.Uint32(value) != 0
	seconds := int32(binary.NativeEndian.Uint32(value[4:]))
	return s.setOptions(func(o *tcpOpts) {
		o.Linger, o.LingerTime = on, time.Duration(max(seconds, 0))*time.Second
	})
}

// Bounds of TCP_MAXSEG (tcp_min_snd_mss, MAX_TCP_WINDOW).
const leastMaxSegment, mostMaxSegment = 88, 32767

func (s *tcpSocket) setMaxSegment(value []byte) Errno {
	n, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	if n != 0 && (n < leastMaxSegment || n > mostMaxSegment) {
		return syscall.EINVAL
	}
	return s.setOptions(func(o *tcpOpts) { o.MaxSegment = n })
}

// maxSegment is the segment size of the connection, and before there is one what was set.
func (s *tcpSocket) maxSegment() int {
	if n := s.options().MaxSegment; n != 0 && s.conn.Load() == nil {
		return n
	}
	return s.info().SndMSS
}

// lingerValue is a struct linger.
func lingerValue(o tcpOpts) []byte {
	b := boolValue(o.Linger)
	return binary.NativeEndian.AppendUint32(b, uint32(o.LingerTime/time.Second))
}

// info describes the connection, if there is one.
func (s *tcpSocket) info() tcp.Info {
	if c := s.conn.Load(); c != nil {
		return c.Info()
	}
	return tcp.Info{State: tcp.Closed, SndMSS: 536, PathMSS: 536, Congestion: "cubic"}
}
