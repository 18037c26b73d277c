package usernet

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"loam/stack"
	"loam/wire"
)

func TestDHCPGivesTheGuestItsConfiguration(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.1\nsearch corp.example lab.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newBareNetwork(t, Config{resolvConf: conf})
	lease, err := n.ifc.DHCP(ctx(t), "guest")
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Addr.String(); got != "10.0.2.15/24" {
		t.Errorf("the guest is %s", got)
	}
	if len(lease.Routers) != 1 || lease.Routers[0].String() != "10.0.2.2" {
		t.Errorf("the routers are %v", lease.Routers)
	}
	if len(lease.DNS) != 1 || lease.DNS[0].String() != "10.0.2.3" {
		t.Errorf("the name servers are %v", lease.DNS)
	}
	if lease.MTU != 1500 {
		t.Errorf("the MTU is %d", lease.MTU)
	}
	if lease.Domain != "corp.example" || len(lease.Search) != 2 {
		t.Errorf("the domain is %q, the search list %v", lease.Domain, lease.Search)
	}
	again, err := n.ifc.DHCP(ctx(t), "guest")
	if err != nil || again.Addr != lease.Addr {
		t.Errorf("the second time the guest is %v, %v", again.Addr, err)
	}
	// The guest now has an address.
	host := listen(t)
	if _, err := n.guest.Dial("tcp", gatewayPort(host.Addr()).String()); err == nil {
		t.Error("the host's loopback network is in reach")
	}
	n.wantCounter(TCPDenied, 1)
}

func TestDHCPMalformedMessagesAreCounted(t *testing.T) {
	n := newNetwork(t, Config{})
	c, err := n.guest.ListenUDP(netip.MustParseAddrPort("10.0.2.15:68"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// resolves the gateway's MAC address first, because few packets can wait for ARP
	if _, err := n.guest.Ping(ctx(t), n.config.Gateway, 0); err != nil {
		t.Fatal(err)
	}
	server := netip.MustParseAddrPort("10.0.2.2:67")
	message := wire.DHCPv4{Op: wire.DHCPv4BootRequest, XID: 1, CHAddr: n.ifc.MAC()}
	message.AddUint8(wire.DHCPv4OptMessageType, uint8(wire.DHCPv4Offer)) // only servers send offers
	good := make([]byte, message.Len())
	message.Put(good)
	for _, msg := range [][]byte{{}, []byte("rubbish"), make([]byte, 300), good[:239], make([]byte, stack.MaxUDP), good} {
		if _, err := c.WriteToUDPAddrPort(msg, server); err != nil {
			t.Fatal(err)
		}
	}
	n.wantCounter(DHCPReceived, 6)
	n.wantCounter(DHCPMalformed, 5)
	n.wantCounter(DHCPIgnored, 1)
	n.wantCounter(DHCPSent, 0)
}
