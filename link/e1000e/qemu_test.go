//go:build linux

package e1000e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"loam/driver/qtest"
	"loam/link"
	"loam/link/e1000e"
	"loam/link/linktest"
	"loam/link/unixsock"
	"loam/stack"
	"loam/wire"
)

// Tests with the network cards of QEMU. Their cable is a Unix socket of the test.

// emulated are QEMU's cards: e1000e has MSI-X, and e1000 has only an interrupt line.
var emulated = []string{"e1000e", "e1000"}

// plug starts a machine with a card. It returns the card's device, the other end of its cable (a Unix socket of the
// test), and the machine.
func plug(t testing.TB, name string) (card *e1000e.Device, cable *unixsock.Device, m *qtest.Machine) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := unixsock.Listen(path, unixsock.Config{MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, f := qtest.StartPCI(t, name, "netdev=n,mac=52:54:00:00:00:01", "-netdev", "stream,id=n,server=off,addr.type=unix,addr.path="+path)
	if cable, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	m.Connected(t, "n")
	if card, err = e1000e.Open(m, f, e1000e.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { card.Close() })
	if got := card.Info().MAC.String(); got != "52:54:00:00:00:01" {
		t.Errorf("the card has address %s", got)
	}
	return card, cable, m
}

// machineCard is a card whose Close also ends QEMU.
type machineCard struct {
	*e1000e.Device
	machine *qtest.Machine
	t       testing.TB
}

func (c machineCard) Close() error {
	err := c.Device.Close()
	if n := c.machine.Held(); n != 0 {
		c.t.Errorf("%d bytes of memory are kept", n)
	}
	c.machine.Stop()
	return err
}

func TestQEMU(t *testing.T) {
	for _, name := range emulated {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(t testing.TB) (link.Device, link.Device) {
				card, cable, m := plug(t, name)
				return machineCard{card, m, t}, cable
			}, linktest.PeerUnseen, linktest.Cable, linktest.NeverShort)
		})
	}
}

// Checksums are correct for frames of all protocols and short lengths. QEMU's e1000e counts padding as payload when it
// computes a checksum.
func TestQEMUChecksum(t *testing.T) {
	for _, name := range emulated {
		card, cable, _ := plug(t, name)
		for _, c := range []linktest.Transport{{Protocol: wire.ProtoTCP}, {Protocol: wire.ProtoUDP}, {Protocol: wire.ProtoTCP, IPv6: true}, {Protocol: wire.ProtoUDP, IPv6: true}} {
			for _, c.Payload = range []int{0, 1, 2, 5, 6, 7, 100, 1001} {
				want := segments(t, linktest.Unfinished(link.Ethernet, c))[0]
				if n, err := card.Queues()[0].Send([]*link.Frame{linktest.Unfinished(link.Ethernet, c)}); n != 1 || err != nil {
					t.Fatalf("Send: %d, %v", n, err)
				}
				in := make([]*link.Frame, 1)
				if _, err := cable.Queues()[0].Recv(in); err != nil {
					t.Fatal(err)
				}
				if got := in[0].Bytes(); len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
					t.Errorf("%s: %+v: % x, want % x", name, c, got, want)
				}
				in[0].Free()
			}
		}
		cable.Close()
	}
}

// A card that offers to cut frames cuts them as link.Segment does. QEMU's e1000 cannot cut frames of IPv6.
func TestQEMUSegments(t *testing.T) {
	card, cable, _ := plug(t, "e1000")
	defer cable.Close()
	if got, want := card.Info().Offloads, link.OffloadChecksum|link.OffloadTSO4; got != want {
		t.Fatalf("the card offers %v, want %v", got, want)
	}
	for _, c := range []linktest.Transport{
		{Protocol: wire.ProtoTCP, Payload: 20_001, GSOSize: 1000}, {Protocol: wire.ProtoTCP, Payload: 65_000, GSOSize: 1448}, {Protocol: wire.ProtoTCP, Payload: 3001, GSOSize: 100},
	} {
		if n, err := card.Queues()[0].Send([]*link.Frame{linktest.Unfinished(link.Ethernet, c)}); n != 1 || err != nil {
			t.Fatalf("Send: %d, %v", n, err)
		}
		for i, want := range segments(t, linktest.Unfinished(link.Ethernet, c)) {
			in := make([]*link.Frame, 1)
			if _, err := cable.Queues()[0].Recv(in); err != nil {
				t.Fatal(err)
			}
			got := in[0].Bytes()
			if len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
				t.Fatalf("%+v: segment %d is\n% x\nwant\n% x", c, i, got[:min(60, len(got))], want[:min(60, len(want))])
			}
			in[0].Free()
		}
	}
}

// A UDP checksum whose sum is zero is sent as 0xffff, because zero means that there is no checksum (RFC 768).
func TestQEMUZeroChecksum(t *testing.T) {
	for _, name := range emulated {
		card, cable, _ := plug(t, name)
		for _, ipv6 := range []bool{false, true} {
			c := linktest.Transport{Protocol: wire.ProtoUDP, IPv6: ipv6, Payload: 100}
			f := linktest.Unfinished(link.Ethernet, c)
			at := int(f.CsumStart + f.CsumOffset)
			b := f.Bytes()
			b[len(b)-2], b[len(b)-1] = 0, 0
			oracle := link.FrameOf(b)
			oracle.Offload = f.Offload
			s := segments(t, oracle)[0]
			copy(b[len(b)-2:], s[at:at+2]) // now the sum is 0
			if n, err := card.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
				t.Fatalf("Send: %d, %v", n, err)
			}
			in := make([]*link.Frame, 1)
			if _, err := cable.Queues()[0].Recv(in); err != nil {
				t.Fatal(err)
			}
			if got := in[0].Bytes()[at:][:2]; got[0] != 0xff || got[1] != 0xff {
				t.Errorf("%s, IPv6 %v: the checksum is % x, want ff ff", name, ipv6, got)
			}
			in[0].Free()
		}
		cable.Close()
	}
}

// Two of Loam's stacks communicate through a QEMU card: ping, and a stream in both directions, over IPv4 and IPv6.
func TestQEMUStack(t *testing.T) {
	for _, name := range emulated {
		t.Run(name, func(t *testing.T) {
			card, cable, _ := plug(t, name)
			guest, host := host(t, card, "10.0.0.1", "fd00::1"), host(t, cable, "10.0.0.2", "fd00::2")
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := guest.Ping(ctx, netip.MustParseAddr("10.0.0.2"), 1000); err != nil {
				t.Errorf("ping: %v", err)
			}
			echo(t, guest, host, "10.0.0.2:7")
			echo(t, guest, host, "[fd00::2]:7")
			echo(t, host, guest, "10.0.0.1:7")
			if c := card.Stats(); c.RxErrors+c.TxErrors+c.TxDropped > 0 {
				t.Errorf("frames are refused: %+v", c)
			}
		})
	}
}

func host(t *testing.T, d link.Device, addresses ...string) *stack.Stack {
	t.Helper()
	s := stack.New(stack.Config{})
	t.Cleanup(func() { s.Close() })
	if _, err := s.Attach(d, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip := netip.MustParseAddr(a)
		if err := s.AddAddress("eth0", netip.PrefixFrom(ip, ip.BitLen()*3/4)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// echo sends a stream to a server that sends it back.
func echo(t *testing.T, client, server *stack.Stack, address string) {
	t.Helper()
	l, err := server.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := client.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	const count = 200 << 10
	go func() {
		b := make([]byte, count)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		c.Write(b)
		c.(*stack.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || len(got) != count {
		t.Fatalf("%d bytes came back, %v; want %d", len(got), err, count)
	}
	for i, b := range got {
		if b != byte(i*7>>3) {
			t.Fatalf("byte %d came back as %#x", i, b)
		}
	}
	c.Close()
}

// The card reports that its cable is disconnected and connected.
func TestQEMULink(t *testing.T) {
	card, cable, m := plug(t, "e1000e")
	defer cable.Close()
	for _, up := range []bool{false, true} {
		m.SetLink(t, "n", up)
		for card.LinkUp() != up {
			runtime.Gosched()
		}
	}
}

// After the machine has ended, nothing hangs, and the error says that the card is gone.
func TestQEMUGone(t *testing.T) {
	card, cable, m := plug(t, "e1000e")
	defer cable.Close()
	m.Stop()
	q := card.Queues()[0]
	for range 5 {
		fs := []*link.Frame{linktest.Plain(link.Ethernet, 100, 0)}
		n, _ := q.Send(fs)
		link.FreeAll(fs[n:])
	}
	if _, err := q.Recv(make([]*link.Frame, 1)); !errors.Is(err, e1000e.ErrGone) {
		t.Errorf("Recv: %v, want ErrGone", err)
	}
	if err := card.Close(); err != nil {
		t.Error(err)
	}
}
