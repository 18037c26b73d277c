package inet

import (
	"time"

	"loam/stack/plpmtud"
	"loam/stack/shared"
)

// Settings of searches for path MTUs without ICMP messages: net.ipv4.tcp_mtu_probing and others. They belong to the stack, and apply
// to searches that start later.

// searches returns the settings. Without a stack they have no effect.
func (n *Network) searches() *shared.Searches {
	if n.stack == nil {
		return &n.unused
	}
	return n.stack.MTUSearches()
}

// linuxProbing converts between Linux's numbers of tcp_mtu_probing and plpmtud.Mode, in both directions. The two differ only in that
// the first two values are swapped.
func linuxProbing(n int64) int64 {
	if n < 2 {
		return 1 - n
	}
	return n
}

// MTUProbing returns the value of tcp_mtu_probing, and SetMTUProbing changes it: 0 to 2.
func (n *Network) MTUProbing() int64 {
	return linuxProbing(int64(n.searches().Searches().Mode))
}

func (n *Network) SetMTUProbing(v int64) {
	n.searches().Change(func(c *plpmtud.Config) { c.Mode = plpmtud.Mode(linuxProbing(v)) })
}

// SearchSetting is a setting of searches that is a number.
type SearchSetting struct {
	net   *Network
	field func(*plpmtud.Config) *int
	usual int
}

// BaseMSS, ProbeFloor and ProbeThreshold return the settings tcp_base_mss, tcp_mtu_probe_floor and tcp_probe_threshold, in bytes.
func (n *Network) BaseMSS() SearchSetting {
	return SearchSetting{n, func(c *plpmtud.Config) *int { return &c.BaseMSS }, plpmtud.DefaultBaseMSS}
}

func (n *Network) ProbeFloor() SearchSetting {
	return SearchSetting{n, func(c *plpmtud.Config) *int { return &c.Floor }, plpmtud.DefaultFloor}
}

func (n *Network) ProbeThreshold() SearchSetting {
	return SearchSetting{n, func(c *plpmtud.Config) *int { return &c.Threshold }, plpmtud.DefaultThreshold}
}

// Get returns the value, and Set changes it.
func (s SearchSetting) Get() int64 {
	c := s.net.searches().Searches()
	if n := *s.field(&c); n != 0 {
		return int64(n)
	}
	return int64(s.usual)
}

func (s SearchSetting) Set(n int64) {
	s.net.searches().Change(func(c *plpmtud.Config) { *s.field(c) = int(n) })
}

// ProbeInterval returns the value of tcp_probe_interval in seconds, and SetProbeInterval changes it.
func (n *Network) ProbeInterval() int64 {
	if d := n.searches().Searches().Interval; d != 0 {
		return int64(d / time.Second)
	}
	return int64(plpmtud.DefaultInterval / time.Second)
}

func (n *Network) SetProbeInterval(seconds int64) {
	n.searches().Change(func(c *plpmtud.Config) { c.Interval = time.Duration(seconds) * time.Second })
}
