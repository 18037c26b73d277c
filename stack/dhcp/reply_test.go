package dhcp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"loam/wire"
)

func TestParameterRequestList(t *testing.T) {
	search, _ := wire.ParseDNSName("eng.loam.test")
	ts := newTestServer(t, func(cfg *ServerConfig) {
		cfg.NTP = []netip.Addr{addr("10.0.2.5")}
		cfg.Search = []wire.DNSName{search}
		cfg.Routes = []wire.DHCPv4Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: serverIP}}
	})
	wish := func(codes ...byte) func(*wire.DHCPv4) {
		return func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptParameterRequest, codes) }
	}
	msg, ok := ts.say(1, wire.DHCPv4Discover, wish(121, 119, 42, 28, 26, 15, 6, 3, 200))
	m := ts.want("", wire.DHCPv4Offer, msg, ok)
	mtu, _ := m.MTU()
	if len(m.ClasslessRoutes()) != 1 || len(m.DomainSearch()) != 1 || len(m.NTP()) != 1 || len(m.Routers()) != 1 ||
		len(m.DNS()) != 1 || mtu != 1400 || m.DomainName() != "loam.test" || m.BroadcastAddr() != addr("10.0.2.255") {
		t.Errorf("not all of what was asked for: %+v", m)
	}
	msg, ok = ts.say(1, wire.DHCPv4Discover, wish(6, 6, 6))
	m = ts.want("", wire.DHCPv4Offer, msg, ok)
	if len(m.DNS()) != 1 || m.Routers() != nil || m.DomainName() != "" {
		t.Errorf("more, or other, than was asked for: %+v", m)
	}
	bits, _ := m.SubnetMask()
	if lease, _ := m.LeaseTime(); bits != 24 || lease != time.Hour {
		t.Error("mask and lease time come in any case")
	}
}

// RFC 2131 section 4.1, RFC 2132 section 9.10: no message exceeds the maximum size of its receiver.
func TestMessageSizeIsRespected(t *testing.T) {
	var search []wire.DNSName
	for _, s := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		name, _ := wire.ParseDNSName(s + ".a-rather-long-name-for-a-domain.in-a-rather-long-search-list.test")
		search = append(search, name)
	}
	ts := newTestServer(t, func(cfg *ServerConfig) { cfg.Search = search })
	wish := func(m *wire.DHCPv4) { m.Add(wire.DHCPv4OptParameterRequest, []byte{119, 3, 6}) }
	msg, ok := ts.say(1, wire.DHCPv4Discover, wish)
	m := ts.want("", wire.DHCPv4Offer, msg, ok)
	if len(msg.Data) > 576-28 || m.DomainSearch() != nil || len(m.Routers()) != 1 || len(m.DNS()) != 1 {
		t.Errorf("%d bytes, search list %v, routers %v: want what fits", len(msg.Data), m.DomainSearch(), m.Routers())
	}
	msg, ok = ts.say(1, wire.DHCPv4Discover, wish, func(m *wire.DHCPv4) { m.AddUint16(wire.DHCPv4OptMaxMessageSize, 1500) })
	m = ts.want("", wire.DHCPv4Offer, msg, ok)
	if !slices.Equal(m.DomainSearch(), search) {
		t.Errorf("search list %v, want all of it", m.DomainSearch())
	}
}
