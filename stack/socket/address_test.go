package socket

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestSplitPort(t *testing.T) {
	for _, test := range []struct {
		address, host string
		port          uint16
		ok            bool
	}{{"192.0.2.1:80", "192.0.2.1", 80, true}, {":0", "", 0, true}, {"[::1]:65535", "::1", 65535, true}, {"a:65536", "", 0, false}, {"a", "", 0, false}} {
		host, port, err := SplitPort("tcp", test.address)
		if (err == nil) != test.ok || test.ok && (host != test.host || port != test.port) {
			t.Errorf("%s: %q, %d, %v", test.address, host, port, err)
		}
	}
}

func TestNetworks(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for _, test := range []struct {
		network        string
		known          bool
		allow4, allow6 bool
	}{{"tcp", true, true, true}, {"tcp4", true, true, false}, {"udp6", true, false, true}, {"unix", false, true, true}} {
		var unknown net.UnknownNetworkError
		if err := CheckNetwork(test.network); errors.As(err, &unknown) == test.known {
			t.Errorf("%s: %v", test.network, err)
		}
		if err := CheckVersion(test.network, four); (err == nil) != test.allow4 {
			t.Errorf("IPv4 on %s: %v", test.network, err)
		}
		if err := CheckVersion(test.network, six); (err == nil) != test.allow6 {
			t.Errorf("IPv6 on %s: %v", test.network, err)
		}
	}
	for network, want := range map[string]string{"udp": "192.0.2.1:53", "tcp4": "192.0.2.1:53", "ip4:1": "192.0.2.1"} {
		if got := NetAddr(network, netip.AddrPortFrom(four, 53)); got.String() != want {
			t.Errorf("%s: %v, want %s", network, got, want)
		}
	}
}
