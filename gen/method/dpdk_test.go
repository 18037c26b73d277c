//go:build linux && dpdk

package method

import (
	"net"
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
)

// Frames sent through a DPDK ring come back in order, and all of them count as left.
func TestDPDKRing(t *testing.T) {
	l := newLab(t)
	c := l.config
	c.Interface = "net_ring0"
	s, err := openDPDK(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := listenDPDK(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const count = 1000
	next := 0
	var got []string
	for next < count {
		before := next
		n, err := s.Send(100, func(slot []byte) int {
			length := l.put(slot, Frame, body(next))
			next++
			return length
		})
		if err != nil || n != next-before {
			t.Fatal(n, err)
		}
		got = append(got, collect(t, r, n)...)
	}
	if err := s.Flush(time.Second); err != nil {
		t.Error(err)
	}
	if c := s.Counters(); c.Handed != count || c.Left != count || len(got) != count {
		t.Errorf("%+v, %d arrived", c, len(got))
	}
	for i, p := range got {
		if p != string(body(i)) {
			t.Fatalf("frame %d is %.20q", i, p)
		}
	}
}

// Frames sent over AF_XDP reach the far end, and frames from the far end are received. DPDK's XDP program is removed
// afterwards.
func TestDPDKOverXDP(t *testing.T) {
	l := newLab(t)
	r := l.listen(t, "packet")
	s, err := openDPDK(l.config)
	if err != nil {
		t.Fatal(err)
	}
	const count = 300
	next := 0
	for next < count {
		if _, err := s.Send(100, func(slot []byte) int {
			length := l.put(slot, Frame, body(next))
			next++
			return length
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Error(err)
	}
	if got := collect(t, r, count); len(got) != count || got[count-1] != string(body(count-1)) {
		t.Errorf("%d arrived", len(got))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text := netns.IP(t, "-d", "link", "show", l.near); strings.Contains(text, "xdp") {
		t.Errorf("left behind:\n%s", text)
	}
}

// A TAP interface of DPDK receives the sent frames and is removed with the sender.
func TestDPDKTap(t *testing.T) {
	l := newLab(t)
	c := l.config
	c.Interface = "net_tap0,iface=dpdktap"
	s, err := openDPDK(c)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Send(100, func(slot []byte) int { return l.put(slot, Frame, body(1)) })
	if err != nil || n != 100 {
		t.Error(n, err)
	}
	if err := s.Flush(time.Second); err != nil {
		t.Error(err)
	}
	if text := netns.IP(t, "-s", "link", "show", "dpdktap"); !strings.Contains(text, " 100 ") {
		t.Errorf("the kernel has not received 100 frames:\n%s", text)
	}
	s.Close()
	if _, err := net.InterfaceByName("dpdktap"); err == nil {
		t.Error("the interface is still there")
	}
}

func TestDPDKRefuses(t *testing.T) {
	netns.Need(t)
	for _, name := range []string{"nosuch0", "net_nonsense0"} {
		if s, err := openDPDK(Config{Interface: name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}
