package usernet

import (
	"net/netip"
	"strings"
	"testing"

	"loam/link/pipe"
)

func TestConfigDefaults(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	c, err := Config{Device: dev, Forwards: []Forward{{Proto: "tcp", Host: netip.MustParseAddrPort("0.0.0.0:8080")}, {Proto: "udp", Guest: netip.MustParseAddrPort("10.0.2.16:53")}}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{
		"10.0.2.0/24": c.Prefix.String(), "10.0.2.2": c.Gateway.String(), "10.0.2.3": c.DNS.String(), "10.0.2.15": c.Guest.String(),
		"tcp 0.0.0.0:8080 to 10.0.2.15:8080": c.Forwards[0].String(),
		"udp 127.0.0.1:0 to 10.0.2.16:53":    c.Forwards[1].String(),
		"10.0.2.30":                          c.lastLease().String(),
	} {
		if got != what {
			t.Errorf("got %s, want %s", got, what)
		}
	}
}

func TestConfigInAnotherSubnet(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	c, err := Config{Device: dev, Prefix: netip.MustParsePrefix("192.168.77.33/27")}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if got := [3]string{c.Gateway.String(), c.DNS.String(), c.Guest.String()}; got != [3]string{"192.168.77.34", "192.168.77.35", "192.168.77.47"} {
		t.Errorf("the addresses are %v", got)
	}
	if got := c.lastLease().String(); got != "192.168.77.62" {
		t.Errorf("the pool ends at %s, not in front of the broadcast address", got)
	}
	c.DNS = netip.MustParseAddr("192.168.77.50")
	if got := c.lastLease().String(); got != "192.168.77.49" {
		t.Errorf("the pool ends at %s, not in front of the name server", got)
	}
}

func TestConfigErrors(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	addr := netip.MustParseAddr
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{}, "Config.Device is missing"},
		{Config{Device: dev, Prefix: netip.MustParsePrefix("fd00::/64")}, "use an IPv4 prefix"},
		{Config{Device: dev, Prefix: netip.MustParsePrefix("10.0.2.0/31")}, "use an IPv4 prefix"},
		{Config{Device: dev, Prefix: netip.MustParsePrefix("10.0.2.0/28")}, "at most 27 bits"},
		{Config{Device: dev, Guest: addr("10.0.3.1")}, "Guest address 10.0.3.1 is not that of a host in 10.0.2.0/24"},
		{Config{Device: dev, Gateway: addr("10.0.2.0")}, "Gateway address 10.0.2.0 is not"},
		{Config{Device: dev, DNS: addr("10.0.2.255")}, "DNS address 10.0.2.255 is not"},
		{Config{Device: dev, DNS: addr("10.0.2.2")}, "must be different"},
		{Config{Device: dev, Forwards: []Forward{{Proto: "sctp"}}}, "use tcp or udp"},
		{Config{Device: dev, Forwards: []Forward{{Proto: "tcp"}}}, "name a port of the guest"},
	} {
		if _, err := test.config.withDefaults(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestReach(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	c, err := Config{Device: dev}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dst, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"10.0.3.1", "10.0.3.1"},
		{"169.254.1.1", "169.254.1.1"},
		{"10.0.2.2", ""}, // the address of the host's loopback: not reachable, because HostLoopback is off
		{"10.0.2.3", ""},
		{"10.0.2.99", ""},
		{"10.0.2.255", ""},
		{"127.0.0.1", ""},
		{"127.1.2.3", ""},
		{"0.0.0.0", ""},
		{"0.1.2.3", ""},
		{"224.0.0.251", ""},
		{"255.255.255.255", ""},
	} {
		got, ok := c.reach(netip.MustParseAddr(test.dst))
		if ok != (test.want != "") || ok && got.String() != test.want {
			t.Errorf("%s leads to %v, %v", test.dst, got, ok)
		}
	}
	c.HostLoopback = true
	if got, ok := c.reachPort(netip.MustParseAddrPort("10.0.2.2:80")); !ok || got.String() != "127.0.0.1:80" {
		t.Errorf("the gateway leads to %v, %v", got, ok)
	}
	if _, ok := c.reachPort(netip.MustParseAddrPort("192.0.2.1:0")); ok {
		t.Errorf("port 0 can be reached")
	}
}
