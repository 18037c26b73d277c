//go:build linux

package probe

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"loam/gen/method"
	"loam/internal/netns"
	"loam/link"
	"loam/link/tap"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// The Linux kernel answers for 4096 addresses on the far side of a TAP interface. Every kind of probe finds all of
// them and recognizes closed ports, and the parser understands a real host's answers. The TCP and UDP ports are
// closed there.
func TestTheKernelAnswers(t *testing.T) {
	netns.Need(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	dev, err := tap.Open(tap.Config{NoOffloads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	name := dev.Info().Name
	kernel, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	netns.Address(t, name, netip.MustParsePrefix("192.168.7.2/24"))
	netns.Up(t, name, 0)
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "replace", "local", "10.0.0.0/20", "dev", "lo"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	// By default a host limits the rate of ICMP errors; echo replies and resets are not limited.
	for _, limit := range []string{"icmp_ratelimit", "icmp_ratemask"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+limit, []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	rx := &pipeReceiver{in: make(chan *link.Frame, 1<<16)}
	go func() {
		defer close(rx.in)
		fs := make([]*link.Frame, link.BatchSize)
		for {
			n, err := dev.Queues()[0].Recv(fs)
			if err != nil {
				return
			}
			for _, f := range fs[:n] {
				rx.in <- f
			}
		}
	}()
	for _, c := range []struct {
		kind Kind
		says Answer
	}{{Echo, EchoReply}, {SYN, Reset}, {UDP, PortUnreachable}} {
		cfg := config(t, c.kind, "10.0.0.0/20")
		cfg.NextHopMAC = wire.MAC(kernel.HardwareAddr)
		if c.kind != Echo {
			cfg.Ports = []uint16{9}
		}
		cfg.Retries = 3
		sum, err := Run(t.Context(), cfg, []method.Sender{&pipeSender{queue: dev.Queues()[0]}}, []method.Receiver{rx})
		if err != nil || sum.Answers[c.says] != 4096 || sum.Forged != 0 || sum.Malformed != 0 {
			t.Errorf("%v: %+v, %v", c.kind, sum, err)
		}
	}
}
