//go:build linux

package method

import (
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"loam/wire"
)

// Every method that sends frames refuses a frame longer than the MTU at once, and sends the following frames.
func TestTooLong(t *testing.T) {
	for _, name := range []string{"pcap", "packet", "ring", "tc", "xdp"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.listen(t, "ring")
			i, err := net.InterfaceByName(l.near)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := ByName(name)
			c := l.config
			c.Size = i.MTU + 100
			s, err := m.Open(c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			long := make([]byte, i.MTU+wire.EthernetLen+3*wire.VLANTagLen)
			long = long[:l.put(long, m.Layer, make([]byte, len(long)-wire.EthernetLen-wire.IPv4MinLen-wire.UDPLen))]
			next := 0
			n, err := s.Send(3, func(slot []byte) int {
				if next++; next == 2 {
					return copy(slot, long)
				}
				return l.put(slot, m.Layer, body(next))
			})
			if n != 2 || err != nil {
				t.Errorf("%d sent, %v", n, err)
			}
			if err := s.Flush(5 * time.Second); err != nil {
				t.Error(err)
			}
			if got := collect(t, r, 2); len(got) != 2 || s.Counters().Refused != 1 || s.Counters().Left != 2 {
				t.Errorf("%d arrived, %+v", len(got), s.Counters())
			}
		})
	}
}

// The method loam counts a datagram as sent only after its last fragment has left.
func TestLoamFragments(t *testing.T) {
	l := newLab(t)
	c := l.config
	c.Size = 9000
	m, _ := ByName("loam")
	s, err := m.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sent := func() uint64 {
		i, err := netlink.LinkByName(l.near)
		if err != nil {
			t.Fatal(err)
		}
		return i.Attrs().Statistics.TxPackets
	}
	before := sent()
	const datagrams, fragments = 100, 7 // a datagram has 9008 bytes with its UDP header, and a fragment 1480 bytes of it
	n, err := s.Send(datagrams, func(slot []byte) int { return len(slot) })
	if n != datagrams || err != nil {
		t.Fatal(n, err)
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := sent() - before; got < datagrams*fragments || s.Counters().Left != datagrams {
		t.Errorf("%d frames left for %d datagrams, %+v", got, datagrams, s.Counters())
	}
}
