package link_test

import (
	"net/netip"
	"testing"

	"loam/link"
	"loam/link/linktest"
)

func TestKindOf(t *testing.T) {
	for _, c := range linktest.Kinds() {
		kind, sender := link.KindOf(c.Frame)
		if kind != c.Kind {
			t.Errorf("%s: kind %b, want %b", c.Name, kind, c.Kind)
		}
		if want := (netip.Addr{}); kind == 0 && sender != want || kind != 0 && sender != linktest.Sender {
			t.Errorf("%s: from %v", c.Name, sender)
		}
		if c.Kind == link.KindUDP && (link.UDPPort(c.Frame) == linktest.Port) == (c.Name == "datagram to another port") {
			t.Errorf("%s: port %d", c.Name, link.UDPPort(c.Frame))
		}
		for n := range c.Frame { // truncated frames
			link.KindOf(c.Frame[:n])
		}
	}
}
