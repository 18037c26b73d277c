//go:build linux

package afxdp_test

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"loam/internal/netns"
	"loam/link"
	"loam/link/afpacket"
	"loam/link/afxdp"
	"loam/link/linktest"
	"loam/link/match"
	"loam/wire"
)

// A device takes the frames that match its rules away from the kernel. A packet socket, which sees all frames that the
// kernel receives, sees only the others.
func TestLeavesOtherTrafficAlone(t *testing.T) {
	for name, mode := range map[string]afxdp.Mode{"native": afxdp.Native, "generic": afxdp.Generic} {
		t.Run(name, func(t *testing.T) {
			from, to := netns.Veth(t, 1500, 1)
			sender := open(t, afxdp.Config{Interface: from})
			defer sender.Close()
			ours := open(t, afxdp.Config{Interface: to, Mode: mode, Match: []match.Rule{{Protocol: wire.ProtoUDP}}})
			defer ours.Close()
			kernel, err := afpacket.Open(afpacket.Config{Interface: to, NoOffloads: true})
			if err != nil {
				t.Fatal(err)
			}
			defer kernel.Close()
			for range 10 {
				for _, protocol := range []wire.Protocol{wire.ProtoUDP, wire.ProtoTCP} {
					send(t, sender, linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: protocol, Payload: 20}))
				}
			}
			for d, want := range map[link.Device]wire.Protocol{ours: wire.ProtoUDP, kernel: wire.ProtoTCP} {
				for n := 0; n < 10; n++ {
					fs := make([]*link.Frame, 1)
					if _, err := d.Queues()[0].Recv(fs); err != nil {
						t.Fatal(err)
					}
					if got := wire.Protocol(fs[0].Bytes()[wire.EthernetLen+9]); got != want {
						t.Errorf("protocol %v, want %v", got, want)
					}
					fs[0].Free()
				}
			}
			for _, d := range []link.Device{ours, kernel} {
				if s := d.Stats(); s.RxFrames != 10 || s.RxDropped != 0 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// send sends one frame with a finished checksum.
func send(t *testing.T, d link.Device, f *link.Frame) {
	t.Helper()
	f.FinishChecksum()
	if n, err := d.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

// Frames that do not fit into the ring are counted as dropped. The frames that fit arrive.
func TestDropsAreCounted(t *testing.T) {
	from, to := netns.Veth(t, 1500, 1)
	a := open(t, afxdp.Config{Interface: from})
	defer a.Close()
	b := open(t, afxdp.Config{Interface: to, Frames: 64})
	defer b.Close()
	const sent = 200
	for i := range sent {
		send(t, a, linktest.Plain(link.Ethernet, 100, uint32(i)))
	}
	fs := make([]*link.Frame, 64)
	for n := 0; n < 64; {
		k, err := b.Queues()[0].Recv(fs)
		if err != nil {
			t.Fatal(err)
		}
		link.FreeAll(fs[:k])
		n += k
	}
	for range 2 { // reading the counter does not change it
		if s := b.Stats(); s.RxFrames != 64 || s.RxDropped != sent-64 {
			t.Errorf("%+v", s)
		}
	}
}

// An error is reported in one line, with advice.
func TestRefusals(t *testing.T) {
	from, to := netns.Veth(t, 1500, 1)
	taken := open(t, afxdp.Config{Interface: from})
	defer taken.Close()
	for name, c := range map[string]struct {
		config afxdp.Config
		want   string
	}{
		"no such interface": {afxdp.Config{Interface: "none0"}, "there is no interface"},
		"a second program":  {afxdp.Config{Interface: from}, "there is an XDP program on it already"},
		"no zero copy":      {afxdp.Config{Interface: to, Copying: afxdp.ZeroCopy}, "no zero copy"},
		"no such queue":     {afxdp.Config{Interface: to, Queue: 7}, "uses 1 queues to receive and 1 to send: take no more"},
		"too many frames":   {afxdp.Config{Interface: to, Frames: 1 << 20}, "more than a ring"},
	} {
		d, err := afxdp.Open(c.config)
		if err == nil {
			d.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		checkClean(t, to)
	}
	if s, err := afxdp.OpenSocket(afxdp.SocketConfig{Interface: from}); err == nil || !strings.Contains(err.Error(), "another AF_XDP socket") {
		t.Errorf("a second socket: %v, %v", s, err)
	}
}

// The kernel frees the queue of a closed socket in the background. Opening it again at once still
// works.
func TestOpenedAgainAtOnce(t *testing.T) {
	from, _ := netns.Veth(t, 1500, 1)
	for range 10 {
		if err := open(t, afxdp.Config{Interface: from}).Close(); err != nil {
			t.Error(err)
		}
	}
}

// Promiscuous mode and the program end with the device.
func TestNothingIsLeft(t *testing.T) {
	from, _ := netns.Veth(t, 1500, 1)
	d := open(t, afxdp.Config{Interface: from, Promiscuous: true})
	if got := describe(t, from); !strings.Contains(got, "promiscuity 1") || !strings.Contains(got, "xdp") {
		t.Errorf("open: %s", got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	checkClean(t, from)
}

func describe(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("ip", "-d", "link", "show", name).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// checkClean fails if the interface has a program or is promiscuous.
func checkClean(t *testing.T, name string) {
	t.Helper()
	if got := describe(t, name); strings.Contains(got, "xdp") || !strings.Contains(got, "promiscuity 0") {
		t.Errorf("left behind: %s", got)
	}
}

// A frame that was handed over is reported as sent, and neither direction allocates.
func TestSocket(t *testing.T) {
	from, to := netns.Veth(t, 1500, 1)
	a, err := afxdp.OpenSocket(afxdp.SocketConfig{Interface: from, TxFrames: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := afxdp.OpenSocket(afxdp.SocketConfig{Interface: to})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := afxdp.Attach(afxdp.ProgramConfig{Interface: to})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Steer(b); err != nil {
		t.Fatal(err)
	}
	round := func() {
		for range 32 {
			slot := a.Tx.Slot()
			linktest.Fill(link.Ethernet, slot[:60], 1)
			a.Tx.Put(60)
		}
		if err := a.Tx.Kick(); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 32; {
			frame, ok := b.Rx.Next()
			if !ok {
				if err := b.Rx.Wait(1e9); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if len(frame) != 60 {
				t.Fatalf("%d bytes", len(frame))
			}
			n++
		}
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for 32 frames", n)
	}
	if handed, left := a.Tx.Handed(), a.Tx.Left(); handed != left || handed != 32*101 {
		t.Errorf("%d handed over, %d left", handed, left)
	}
	if a.Tx.Invalid() != 0 || b.Drops() != 0 {
		t.Errorf("%d refused, %d dropped", a.Tx.Invalid(), b.Drops())
	}
	for range 2 { // the kernel receives the frames that were not steered to the socket
		if err := p.Forget(0); err != nil {
			t.Error(err)
		}
	}
	linktest.Fill(link.Ethernet, a.Tx.Slot()[:60], 1)
	a.Tx.Put(60)
	if err := a.Tx.Kick(); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Rx.Next(); ok {
		t.Error("a frame came to a socket that was forgotten")
	}
}

// A slot is not free until its frame has left. When all frames have left, all slots are free again.
func TestSlotsComeBack(t *testing.T) {
	from, _ := netns.Veth(t, 9000, 1)
	s, err := afxdp.OpenSocket(afxdp.SocketConfig{Interface: from, TxFrames: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		for range 4 {
			slot := s.Tx.Slot()
			if len(slot) < 9014 {
				t.Fatalf("a slot of %d bytes", len(slot))
			}
			linktest.Fill(link.Ethernet, slot[:9014], 0)
			s.Tx.Put(9014)
		}
		if s.Tx.Slot() != nil {
			t.Error("a fifth of four slots")
		}
		if err := s.Tx.Kick(); err != nil && !errors.Is(err, afxdp.ErrFull) {
			t.Fatal(err)
		}
		for s.Tx.Left() < s.Tx.Handed() {
			if err := s.Tx.Wait(1e9); err != nil {
				t.Fatal(err)
			}
		}
	}
	if i, err := net.InterfaceByName(from); err != nil || i.MTU != 9000 {
		t.Error(i, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil && !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
}
