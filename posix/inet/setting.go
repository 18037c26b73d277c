package inet

import (
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/posix/credential"
	"loam/stack"
	"loam/stack/tcp"
	"loam/stack/tcp/congestion"
)

// Settings of the network (/proc/sys/net). On Linux, each network namespace has its own; Loam has one namespace.

// Settings are the settings that apply to all sockets. A new TCP socket gets the present values of the TCP settings as its options.
type Settings struct {
	// Backlog is the largest backlog of a listener (net.core.somaxconn). FirstPort is the first port that a caller without
	// CAP_NET_BIND_SERVICE may bind (net.ipv4.ip_unprivileged_port_start).
	Backlog, FirstPort atomic.Int64

	// KeepAliveIdle, KeepAliveInterval and FinWait2 are net.ipv4.tcp_keepalive_time, tcp_keepalive_intvl and tcp_fin_timeout, in seconds.
	// KeepAliveCount and SynRetries are tcp_keepalive_probes and tcp_syn_retries.
	KeepAliveIdle, KeepAliveInterval, KeepAliveCount, FinWait2, SynRetries Preset

	FastOpen atomic.Int64 // net.ipv4.tcp_fastopen

	mu         sync.Mutex
	congestion string // net.ipv4.tcp_congestion_control; "": the default
}

// Preset is a setting that sockets have only if it was changed.
type Preset struct {
	value atomic.Int64
	usual int64
}

// Get returns the value, and Set changes it.
func (p *Preset) Get() int64 {
	if n := p.value.Load(); n != 0 {
		return n
	}
	return p.usual
}

func (p *Preset) Set(n int64) { p.value.Store(n) }

// init sets the defaults.
func (s *Settings) init() {
	s.Backlog.Store(linux.SOMAXCONN)
	s.FastOpen.Store(fastClient)
	s.FirstPort.Store(credential.FirstPort)
	s.KeepAliveIdle.usual = int64(tcp.DefaultKeepAlive / time.Second)
	s.KeepAliveInterval.usual = int64(tcp.DefaultKeepAliveInterval / time.Second)
	s.KeepAliveCount.usual = tcp.DefaultKeepAliveCount
	s.FinWait2.usual = int64(tcp.DefaultFinWait2 / time.Second)
	s.SynRetries.usual = tcp.DefaultSynRetries
}

// options returns the options of a new TCP socket. A zero selects the default of the stack.
func (s *Settings) options() stack.TCPOptions {
	seconds := func(p *Preset) time.Duration { return time.Duration(p.value.Load()) * time.Second }
	s.mu.Lock()
	defer s.mu.Unlock()
	return stack.TCPOptions{
		Delay:         true, // Nagle's algorithm is on unless TCP_NODELAY is set
		KeepAliveIdle: seconds(&s.KeepAliveIdle), KeepAliveInterval: seconds(&s.KeepAliveInterval), FinWait2: seconds(&s.FinWait2),
		KeepAliveCount: int(s.KeepAliveCount.value.Load()), SynRetries: int(s.SynRetries.value.Load()), Congestion: s.congestion,
	}
}

// Congestion returns the name of the congestion control of new sockets.
func (s *Settings) Congestion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.congestion == "" {
		return defaultCongestion
	}
	return s.congestion
}

// SetCongestion sets it. Errors: ENOENT.
func (s *Settings) SetCongestion(name string) error {
	if congestion.Named(name) == nil {
		return linux.ENOENT
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.congestion = name
	return nil
}

// PortRange returns the range of ports for sockets that do not choose one (net.ipv4.ip_local_port_range).
func (n *Network) PortRange() (first, last int64) {
	if n.stack == nil {
		return 32768, 60999
	}
	a, b := n.stack.Ports().Range()
	return int64(a), int64(b)
}

// SetPortRange sets it. Errors: EINVAL if it is empty, or contains a port below FirstPort.
func (n *Network) SetPortRange(first, last int64) error {
	if last < first || first < n.FirstPort.Load() {
		return linux.EINVAL
	}
	if n.stack != nil {
		n.stack.Ports().SetRange(uint16(first), uint16(last))
	}
	return nil
}

// SetFirstPort sets FirstPort. Errors: EINVAL if it is above the first port of PortRange.
func (n *Network) SetFirstPort(port int64) error {
	if first, _ := n.PortRange(); first < port {
		return linux.EINVAL
	}
	n.FirstPort.Store(port)
	return nil
}
