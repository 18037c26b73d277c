package port

import (
	"net/netip"
	"testing"

	"loam/wire"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// When two sockets conflict, by address and by the options SO_REUSEADDR and SO_REUSEPORT, as on Linux (socket(7),
// ip(7)). In each row the existing socket is on the left.
func TestConflict(t *testing.T) {
	const any, one, two, any6, one6 = "0.0.0.0", "192.0.2.1", "192.0.2.2", "::", "2001:db8::1"
	none := Options{}
	reuseAddr := Options{ReuseAddr: true}
	reusePort := Options{ReusePort: true}
	both := Options{ReuseAddr: true, ReusePort: true}
	for _, test := range []struct {
		sentence   string
		have       string
		haveOption Options
		listening  bool
		want       string
		wantOption Options
		tcp, udp   bool // whether the second socket fails, for TCP and for UDP
	}{
		{"the same address", one, none, false, one, none, true, true},
		{"different addresses", one, none, true, two, none, false, false},
		{"all addresses and one", any, none, false, one, none, true, true},
		{"one address and all", one, none, false, any, none, true, true},

		{"only the new one with SO_REUSEADDR", one, none, false, one, reuseAddr, true, true},
		{"only the old one with SO_REUSEADDR", one, reuseAddr, false, one, none, true, true},
		{"both with SO_REUSEADDR", one, reuseAddr, false, one, reuseAddr, false, false},
		{"both with SO_REUSEADDR, all and one", any, reuseAddr, false, one, reuseAddr, false, false},
		{"both with SO_REUSEADDR, and the old one listens", one, reuseAddr, true, one, reuseAddr, true, false},
		{"both with SO_REUSEADDR, and the old one listens on all", any, reuseAddr, true, one, reuseAddr, true, false},

		{"only the new one with SO_REUSEPORT", one, none, true, one, reusePort, true, true},
		{"both with SO_REUSEPORT", one, reusePort, false, one, reusePort, false, false},
		{"both with SO_REUSEPORT, and the old one listens", one, reusePort, true, one, reusePort, false, false},
		{"both with SO_REUSEPORT, of different users", one, Options{ReusePort: true, Owner: 1}, true, one, reusePort, true, true},
		{"one option each", one, reuseAddr, false, one, reusePort, true, true},
		{"one with both, one with SO_REUSEADDR, listening", one, both, true, one, reuseAddr, true, false},
		{"both with both, of different users, not listening", one, Options{ReuseAddr: true, ReusePort: true, Owner: 1}, false, one, both, false, false},

		{"different interfaces", any, Options{Interface: 1}, true, any, Options{Interface: 2}, false, false},
		{"the same interface", any, Options{Interface: 1}, true, any, Options{Interface: 1}, true, true},
		{"one interface and all", any, Options{Interface: 1}, true, any, none, true, true},

		{"IPv6 takes IPv4 too", any6, none, false, one, none, true, true},
		{"IPv4, then IPv6 for both", any, none, false, any6, none, true, true},
		{"IPv6 only", any6, Options{V6Only: true}, true, any, none, false, false},
		{"IPv4, then IPv6 only", one, none, true, any6, Options{V6Only: true}, false, false},
		{"one IPv6 address", one6, none, true, any, none, false, false},
		{"IPv6, all and one", any6, Options{V6Only: true}, false, one6, none, true, true},
	} {
		have := Claim{addr(test.have), test.haveOption, test.listening}
		want := Claim{addr(test.want), test.wantOption, false}
		if got := Conflict(wire.ProtoTCP, want, have); got != test.tcp {
			t.Errorf("TCP, %s: conflict %v, want %v", test.sentence, got, test.tcp)
		}
		have.Listening = false
		if got := Conflict(wire.ProtoUDP, want, have); got != test.udp {
			t.Errorf("UDP, %s: conflict %v, want %v", test.sentence, got, test.udp)
		}
	}
}
