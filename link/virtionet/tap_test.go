//go:build linux

package virtionet_test

import (
	"fmt"
	"io"
	"net"
	"testing"

	"loam/driver/qtest"
	"loam/internal/netns"
	"loam/link"
	"loam/link/virtionet"
	"loam/stack"
)

// A QEMU card on a tap interface, with all offloads and several queues, and Linux at the other end.
func TestQEMUTap(t *testing.T) {
	netns.Need(t)
	for _, w := range qtest.Ways {
		for _, queues := range []int{1, 2} {
			if queues > 1 && w.Name == "PCI with one vector" {
				continue // one vector works like an interrupt line, which is tested with two pairs
			}
			t.Run(fmt.Sprintf("%s, %d pairs", w.Name, queues), func(t *testing.T) { testTap(t, w, queues) })
		}
	}
}

const linuxAddress, guestAddress = "10.0.0.2", "10.0.0.1"

func testTap(t *testing.T, w qtest.Way, queues int) {
	netdev, options := "tap,id=n,ifname=loam0,script=no,downscript=no,vhost=off,vnet_hdr=on", "netdev=n,mq=off"
	if queues > 1 {
		netdev, options = netdev+",queues=2", "netdev=n,mq=on"
	}
	m, v := w.Start(t, "virtio-net", options, "-netdev", netdev)
	netns.IP(t, "addr", "add", linuxAddress+"/24", "dev", "loam0")
	netns.IP(t, "link", "set", "loam0", "up")
	card, err := virtionet.Open(v, virtionet.Config{Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(card.Queues()); n != queues {
		t.Errorf("%d pairs of queues, want %d", n, queues)
	}
	if o := card.Info().Offloads; !o.Has(link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6) {
		t.Errorf("offloads %b", o)
	}
	s := host(t, card, guestAddress)
	toLinux(t, s)
	toGuest(t, s)
	c := card.Stats()
	if c.RxErrors+c.TxErrors+c.TxDropped > 0 || c.TxBytes < c.TxFrames*2000 || c.RxBytes < c.RxFrames*2000 {
		t.Errorf("frames are refused, or not large: %+v", c)
	}
	s.Close()
	if err := card.Close(); err != nil {
		t.Error(err)
	}
	if n := m.Held(); n != 0 {
		t.Errorf("%d bytes of memory are kept", n)
	}
}

// tapBytes is the number of bytes sent in each direction.
const tapBytes = 8 << 20

// toLinux sends a stream to a socket of Linux.
func toLinux(t *testing.T, s *stack.Stack) {
	t.Helper()
	l, err := net.Listen("tcp", linuxAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := s.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			l.Close()
			return
		}
		c.Write(pattern(tapBytes))
		c.Close()
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	checkPattern(t, c)
}

// toGuest sends a stream from a socket of Linux.
func toGuest(t *testing.T, s *stack.Stack) {
	t.Helper()
	l, err := s.Listen("tcp", ":9")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := net.Dial("tcp", guestAddress+":9")
		if err != nil {
			t.Error(err)
			l.Close()
			return
		}
		c.Write(pattern(tapBytes))
		c.Close()
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	checkPattern(t, c)
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 31 >> 5)
	}
	return b
}

func checkPattern(t *testing.T, c net.Conn) {
	t.Helper()
	defer c.Close()
	got, err := io.ReadAll(c)
	if err != nil || len(got) != tapBytes {
		t.Fatalf("%d bytes arrive, %v", len(got), err)
	}
	for i, b := range got {
		if b != byte(i*31>>5) {
			t.Fatalf("byte %d arrives as %#x", i, b)
		}
	}
}
