//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"loam/link"
	"loam/link/tap"
)

// Linux against Linux over the same faults is the yardstick for Loam. The second kernel is the first
// one in another network namespace, which belongs to a thread.

// yonder is a network namespace of its own.
type yonder struct {
	do chan func() // buffer of one: run sends and waits, the thread receives, the end of the test closes it
}

// newYonder creates a namespace that is removed at the end of the test.
func newYonder(t testing.TB) *yonder {
	t.Helper()
	y := &yonder{do: make(chan func(), 1)}
	made := make(chan error, 1) // receives one error or nil from the goroutine below
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		made <- syscall.Unshare(syscall.CLONE_NEWNET)
		for f := range y.do {
			f()
		}
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(y.do) })
	return y
}

// run calls f in the namespace. Sockets that f opens stay in the namespace.
func (y *yonder) run(f func()) {
	done := make(chan struct{}) // closed by the thread
	y.do <- func() {
		defer close(done)
		f()
	}
	<-done
}

// host returns the kernel in the namespace as a host, for TCP.
func (y *yonder) host(addr netip.Addr) host {
	here := linuxHost(addr)
	return host{
		name: "yonder", addr: addr,
		dial: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			y.run(func() { c, err = here.dial(ctx, network, address) })
			return c, err
		},
		listen: func(network, address string) (l net.Listener, err error) {
			y.run(func() { l, err = here.listen(network, address) })
			return l, err
		},
	}
}

// tap creates an interface with an address in the namespace and opens its other end.
func (y *yonder) tap(s setup, name string, addr netip.Addr) (d link.Device, err error) {
	y.run(func() {
		// For a fair comparison: Loam is compared with a congestion control that reacts to loss, unlike
		// BBR, and Reno is the one that every kernel allows a namespace to select.
		if err = os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0); err != nil {
			return
		}
		if d, err = tap.Open(tap.Config{Name: name, Queues: s.queues, NoOffloads: s.noOffloads}); err != nil {
			return
		}
		for _, command := range []string{
			"link set " + name + " up txqueuelen 10000 mtu " + strconv.Itoa(s.linkMTU()),
			"address add " + addr.String() + "/24 dev " + name,
		} {
			if out, e := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); e != nil {
				d.Close()
				err = fmt.Errorf("ip %s: %w\n%s", command, e, out)
				return
			}
		}
	})
	return d, err
}

// newLinuxLab is like newLab, but with another kernel instead of Loam. The field loam is that kernel, and setup.wrap
// wraps its end of the link.
func newLinuxLab(t testing.TB, s setup) *lab {
	t.Helper()
	l, kernel := openLab(t)
	l.makeTap(s, kernel)
	l.Cleanup(l.remove)
	near, err := tap.Open(tap.Config{Name: l.tap, Queues: s.queues, NoOffloads: s.noOffloads})
	l.must(err)
	l.Cleanup(func() { near.Close() })
	y := newYonder(t)
	far, err := y.tap(s, l.tap+"y", kernel.Next())
	l.must(err)
	l.bridge(near, s.wrap(far))
	l.linux, l.loam = linuxHost(kernel), y.host(kernel.Next())
	return l
}

// bridge connects two devices until the test ends, and then closes them.
func (l *lab) bridge(a, b link.Device) {
	var copies sync.WaitGroup
	for i := range a.Queues() {
		qa, qb := a.Queues()[i], b.Queues()[i]
		copies.Go(func() { carry(qa, qb) })
		copies.Go(func() { carry(qb, qa) })
	}
	l.Cleanup(func() {
		a.Close()
		b.Close()
		copies.Wait()
	})
}

// carry sends the frames that one queue receives over another, until either is closed.
func carry(from, to link.Queue) {
	fs := make([]*link.Frame, link.BatchSize)
	for {
		n, err := from.Recv(fs)
		if err != nil {
			return
		}
		for rest := fs[:n]; len(rest) > 0; {
			n, err := to.Send(rest)
			rest = rest[n:]
			if err != nil {
				link.FreeAll(rest)
				return
			}
			if len(rest) > 0 {
				<-to.Room()
			}
		}
	}
}
