package stack_test

import (
	"errors"
	"net/netip"
	"testing"

	"loam/stack"
)

// RouteTo returns the interface, router and source address of a path.
func TestRouteTo(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.station("eth1", "192.168.7.1/24")
		w.mustRoute(stack.Route{Dst: prefix("0.0.0.0/0"), Gateway: address("10.0.0.254")})
		w.mustRoute(stack.Route{Dst: prefix("172.16.0.0/12"), Gateway: address("192.168.7.254"), MTU: 1300})
		for dst, want := range map[string]stack.Route{
			"127.0.0.1":    {Interface: "lo", Source: address("127.0.0.1"), MTU: 65535},
			"192.168.7.1":  {Interface: "lo", Source: address("192.168.7.1"), MTU: 65535},
			"192.168.7.9":  {Interface: "eth1", Source: address("192.168.7.1"), MTU: 1500},
			"172.16.5.5":   {Interface: "eth1", Source: address("192.168.7.1"), Gateway: address("192.168.7.254"), MTU: 1300},
			"198.51.100.1": {Interface: w.ifc.Name(), Source: addrA, Gateway: address("10.0.0.254"), MTU: 1500},
		} {
			want.Dst = netip.PrefixFrom(address(dst), 32)
			if got, err := w.s.RouteTo(address(dst)); got != want || err != nil {
				t.Errorf("%s: %+v, %v, want %+v", dst, got, err, want)
			}
		}
		if _, err := w.s.RouteTo(address("2001:db8::1")); !errors.Is(err, stack.ErrNetUnreachable) {
			t.Errorf("an address that no route leads to: %v", err)
		}
	})
}
