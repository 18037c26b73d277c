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

// lab is one Loam host and the kernel, joined by a tap:
//
//	Loam, 10.77.n.2 ── tap ── 10.77.n.1, the kernel
//
// Everything in it is removed when the test ends, however it ends.
type lab struct {
	testing.TB
	ctx   context.Context // ends when the test has taken far too long
	stack *stack.Stack
	ifc   *stack.Interface
	tap   string // the name of the interface, at the kernel's end and at Loam's; of the kernel's end if it is a veth: see far
	loam  host
	linux host
}

// setup says how a lab is built. The zero value is an interface of 1500 bytes
// with one queue, all offloads, and a stack of one shard.
type setup struct {
	mtu        int // of both ends
	noOffloads bool
	queues     int // of the tap, and shards of the stack
	tcp        tcp.Config
	noAddress  bool                          // Loam begins without one
	wrap       func(link.Device) link.Device // what Loam has between itself and the tap
	// open opens Loam's end of a veth pair, which then takes the place of the tap.
	open func(name string) (link.Device, error)
}

// bound is how long a test may take before everything in it is cancelled. It is
// far more than any takes, so what fails for it hangs.
const bound = 5 * time.Minute

var (
	pcapDir  = flag.String("pcap", "", "keep what tcpdump sees on each tap in files in this `folder`")
	networks atomic.Uint32 // how many labs there have been
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

// openLab returns a lab with nothing in it, and the address of the kernel's end.
func openLab(t testing.TB) (*lab, netip.Addr) {
	t.Helper()
	netns.Need(t)
	n := networks.Add(1)
	ctx, cancel := context.WithTimeoutCause(t.Context(), bound, fmt.Errorf("not done after %v", bound))
	t.Cleanup(cancel)
	return &lab{TB: t, ctx: ctx, tap: fmt.Sprintf("loam%d", n)}, netip.AddrFrom4([4]byte{10, 77, byte(n), 1})
}

// makeTap makes the interface and gives the kernel's end its address.
func (l *lab) makeTap(s setup, kernel netip.Addr) {
	l.Helper()
	mode := []string{"mode", "tap"}
	if s.queues > 1 {
		mode = append(mode, "multi_queue")
	}
	// Datagrams that stay incomplete Linux keeps for 30 s, and takes no new ones when it
	// holds too many, of all tests together. Loam lets go of the oldest.
	l.must(os.WriteFile("/proc/sys/net/ipv4/ipfrag_high_thresh", []byte("1000000000"), 0))
	l.ip("link", "set", "lo", "up") // by which the kernel tells its own sockets that nobody answers ARP
	if s.open != nil {
		l.ip("link", "add", l.tap, "type", "veth", "peer", "name", l.far())
		l.ip("link", "set", l.far(), "up", "mtu", strconv.Itoa(s.linkMTU()))
	} else {
		l.ip(append([]string{"tuntap", "add", "dev", l.tap}, mode...)...)
	}
	// The queue holds what a thousand senders send at once, so that nothing is lost
	// but what a test wants to lose.
	l.ip("link", "set", l.tap, "up", "txqueuelen", "10000", "mtu", strconv.Itoa(s.linkMTU()))
	l.ip("address", "add", kernel.String()+"/24", "dev", l.tap)
}

// attach gives the tap to a new stack.
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
	l.eventually("the interface is up", func() bool { // the kernel starts it in the background, and loses what comes before
		return strings.Contains(l.run("ip", "-brief", "link", "show", l.tap), " UP ")
	})
}

// far is the name of Loam's end of a veth pair.
func (l *lab) far() string { return l.tap + "far" }

// device opens Loam's end.
func (s setup) device(l *lab) (link.Device, error) {
	if s.open != nil {
		return s.open(l.far())
	}
	return tap.Open(tap.Config{Name: l.tap, Queues: s.queues, NoOffloads: s.noOffloads})
}

// remove removes the interface from under the stack. The other way round the
// kernel would wait up to a second, most times, until it has looked at the loss of
// the carrier.
func (l *lab) remove() { l.ip("link", "del", l.tap) }

// report shows what both ends know when a test has failed.
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

// meet has the two ends learn each other's link-layer address: only some of the
// packets that are sent before that are kept, by either.
func (l *lab) meet() {
	l.Helper()
	_, err := l.stack.Ping(l.ctx, l.linux.addr, 0)
	l.must(err)
}

// must fails the test for an error.
func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// eventually waits until the condition holds, and fails the test when that does
// not happen within bound. Most conditions here are of the kernel, which does not
// tell when they change.
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

// small reports whether this run is to be a quick one.
func small() bool { return testing.Short() || race.Enabled }

// scale is full, or quick where the run is to be a quick one.
func scale(full, quick int) int {
	if small() {
		return quick
	}
	return full
}
