//go:build linux

package interop

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/internal/race"
	"loam/link"
	"loam/link/tap"
	"loam/stack"
	"loam/stack/tcp"
)

// lab is one Loam host and the kernel, connected by a tap:
//
//	Loam, 10.77.n.2 ── tap ── 10.77.n.1, the kernel
//
// Everything in it is removed when the test ends, however it ends.
type lab struct {
	testing.TB
	ctx   context.Context // ends when the test has taken longer than bound
	stack *stack.Stack
	ifc   *stack.Interface
	tap   string // name of the tap at both ends; for a veth pair, the name of the kernel's end; far returns that of Loam's end
	loam  host
	linux host
}

// setup describes how a lab is built. The zero value is an interface with an MTU of 1500 bytes, one
// queue and all offloads, and a stack with one shard.
type setup struct {
	mtu        int // MTU of both ends
	noOffloads bool
	queues     int // queues of the tap, and shards of the stack
	tcp        tcp.Config
	noAddress  bool                          // Loam starts without an address
	wrap       func(link.Device) link.Device // wraps Loam's end of the tap
	// open opens Loam's end of a veth pair, which then replaces the tap.
	open func(name string) (link.Device, error)
}

// bound is the time after which everything in a test is cancelled. It is far longer than any test
// takes, so a test that reaches it hangs.
const bound = 5 * time.Minute

var (
	pcapDir  = flag.String("pcap", "", "keep what tcpdump sees on each tap in files in this `folder`")
	networks atomic.Uint32 // number of labs so far
)

func newLab(t testing.TB, s setup) *lab {
	t.Helper()
	l, kernel := openLab(t)
	l.makeTap(s, kernel)
	if *pcapDir != "" {
		l.capture(filepath.Join(*pcapDir, strings.ReplaceAll(t.Name(), "/", "-")+".pcap"))
	}
	l.attach(s)
	l.linux = linuxHost(kernel)
	l.loam = loamHost(l.stack, kernel.Next())
	if !s.noAddress {
		l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(l.loam.addr, 24)))
	}
	return l
}

// openLab returns an empty lab, and the address of the kernel's end.
func openLab(t testing.TB) (*lab, netip.Addr) {
	t.Helper()
	netns.Need(t)
	n := networks.Add(1)
	ctx, cancel := context.WithTimeoutCause(t.Context(), bound, fmt.Errorf("not done after %v", bound))
	t.Cleanup(cancel)
	return &lab{TB: t, ctx: ctx, tap: fmt.Sprintf("loam%d", n)}, netip.AddrFrom4([4]byte{10, 77, byte(n), 1})
}

// makeTap creates the interface and configures the kernel's end.
func (l *lab) makeTap(s setup, kernel netip.Addr) {
	l.Helper()
	mode := []string{"mode", "tap"}
	if s.queues > 1 {
		mode = append(mode, "multi_queue")
	}
	// Linux keeps incomplete datagrams for 30 s, and accepts no new ones when it holds too many, over
	// all tests. Loam drops the oldest.
	l.must(os.WriteFile("/proc/sys/net/ipv4/ipfrag_high_thresh", []byte("1000000000"), 0))
	l.ip("link", "set", "lo", "up") // needed by the kernel to report to its own sockets that ARP got no answer
	if s.open != nil {
		l.ip("link", "add", l.tap, "type", "veth", "peer", "name", l.far())
		l.ip("link", "set", l.far(), "up", "mtu", strconv.Itoa(s.linkMTU()))
	} else {
		l.ip(append([]string{"tuntap", "add", "dev", l.tap}, mode...)...)
	}
	// The queue holds everything that a thousand senders send at once, so that only intended losses
	// occur.
	l.ip("link", "set", l.tap, "up", "txqueuelen", "10000", "mtu", strconv.Itoa(s.linkMTU()))
	l.ip("address", "add", kernel.String()+"/24", "dev", l.tap)
}

// attach attaches the tap to a new stack.
func (l *lab) attach(s setup) {
	l.Helper()
	d, err := s.device(l)
	l.must(err)
	if s.wrap != nil {
		d = s.wrap(d)
	}
	l.stack = stack.New(stack.Config{Shards: max(1, s.queues), TCP: s.tcp})
	l.ifc, err = l.stack.Attach(d, stack.InterfaceConfig{Name: l.tap})
	if err != nil {
		d.Close()
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if l.Failed() {
			l.report()
		}
		l.remove()
		l.must(l.stack.Close())
		if n := link.Outstanding(); n != 0 {
			l.Errorf("%d frames left behind", n)
		}
	})
	l.eventually("the interface is up", func() bool { // the kernel sets it up in the background, and drops frames before that
		return strings.Contains(l.run("ip", "-brief", "link", "show", l.tap), " UP ")
	})
}

// far returns the name of Loam's end of a veth pair.
func (l *lab) far() string { return l.tap + "far" }

// device opens Loam's end.
func (s setup) device(l *lab) (link.Device, error) {
	if s.open != nil {
		return s.open(l.far())
	}
	return tap.Open(tap.Config{Name: l.tap, Queues: s.queues, NoOffloads: s.noOffloads})
}

// remove deletes the interface before the stack closes it. In the other order, the kernel would usually
// wait up to a second until it has handled the loss of carrier.
func (l *lab) remove() { l.ip("link", "del", l.tap) }

// report logs the state of both ends after a test has failed.
func (l *lab) report() {
	l.Logf("Loam counts:\n%s", counted(l.stack))
	l.Logf("the tap: %+v", l.ifc.Device().Stats())
	for _, command := range []string{"ss -tuinom", "ip -s link show " + l.tap, "ip neigh", "nstat -s"} {
		out, _ := exec.Command("sh", "-c", command).CombinedOutput()
		l.Logf("%s:\n%s", command, out)
	}
}

func counted(s *stack.Stack) string {
	c := s.Counters()
	return c.String()
}

// meet makes both ends learn each other's link-layer address. Before that, each end queues only some
// packets.
func (l *lab) meet() {
	l.Helper()
	_, err := l.stack.Ping(l.ctx, l.linux.addr, 0)
	l.must(err)
}

// must fails the test if err is not nil.
func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// eventually waits until the condition holds, and fails the test if that takes longer than bound. It
// polls, because most conditions are of the kernel, which does not report changes.
func (l *lab) eventually(what string, condition func() bool) {
	l.Helper()
	for !condition() {
		select {
		case <-l.ctx.Done():
			l.Fatalf("never came: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// sysctl sets a variable of net/ipv4 in the namespace until the test ends.
func (l *lab) sysctl(name, value string) {
	l.Helper()
	file := filepath.Join("/proc/sys/net/ipv4", name)
	old, err := os.ReadFile(file)
	l.must(err)
	l.must(os.WriteFile(file, []byte(value), 0))
	l.Cleanup(func() { l.must(os.WriteFile(file, old, 0)) })
}

// small reports whether this run is a quick one.
func small() bool { return testing.Short() || race.Enabled }

// scale returns the first number (full), or in a quick run the second one (quick).
func scale(full, quick int) int {
	if small() {
		return quick
	}
	return full
}
