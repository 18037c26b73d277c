package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"loam/stack"
	"loam/wire"
)

// SO_BINDTODEVICE: a socket sends by its interface, whatever the routes say, and hears what
// arrives there.
func TestDevice(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		other := w.station("eth1", "192.0.2.1/24")
		other.ifc.SetNeighbour(address("192.0.2.2"), macB)
		other.ifc.SetNeighbour(address("198.51.100.1"), macB)
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: addrB})
		w.advance(5e9)
		w.forget()
		other.forget()
		c := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{})
		mustWriteTo(t, c, "by the routes", "198.51.100.1:9")
		w.want("without an interface", `udp 10.0.0.1:53 > 198.51.100.1:9 "by the routes"`)
		c.SetDevice(other.ifc)
		mustWriteTo(t, c, "by the link", "198.51.100.1:9")
		other.want("with one", `udp 192.0.2.1:53 > 198.51.100.1:9 "by the link"`)
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: address("192.0.2.2"), Interface: "eth1", Metric: 9})
		mustWriteTo(t, c, "by the gateway", "203.0.113.1:9")
		other.want("by a route of the interface", `udp 192.0.2.1:53 > 203.0.113.1:9 "by the gateway"`)
		w.sendUDP(1000, 53, "here")
		w.want("nobody listens there", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		there := address("192.0.2.1")
		other.sendIP(wire.IPv4{Protocol: wire.ProtoUDP, Src: address("192.0.2.2"), Dst: there},
			datagram(mustAddrPort("192.0.2.2:1000"), netip.AddrPortFrom(there, 53), "there"))
		synctest.Wait()
		b := make([]byte, 20)
		if n, _, err := c.TryReadFrom(b); string(b[:n]) != "there" || err != nil {
			t.Errorf("it hears %q, %v", b[:n], err)
		}
		if c.Device() != other.ifc {
			t.Errorf("it is bound to %v", c.Device())
		}
	})
}
