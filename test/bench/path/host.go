package path

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"loam/link"
	"loam/link/pipe"
	"loam/link/tap"
	"loam/stack"
	"loam/stack/tcp"
	"loam/wire"
)

// port is the TCP port of receivers.
const port = 5001

// place is one of the two ends of a path.
type place struct {
	path   Path
	number byte // 1 for the first end, 2 for the second
}

// address returns the address of an end.
func (at place) address() netip.Addr {
	if at.path.IPv6 {
		return netip.AddrFrom16([16]byte{0xfd, 0x77, 15: at.number})
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, at.number})
}

// prefix returns the address with the length of the link's prefix.
func (at place) prefix() netip.Prefix {
	if at.path.IPv6 {
		return netip.PrefixFrom(at.address(), 64)
	}
	return netip.PrefixFrom(at.address(), 24)
}

// listen returns the address of the receiver, if it is at this end.
func (at place) listen() netip.AddrPort { return netip.AddrPortFrom(at.address(), port) }

// peer returns the address of the receiver, if it is at the other end.
func (at place) peer() netip.AddrPort { return place{at.path, 3 - at.number}.listen() }

// loam is the stack of this tree on one end of a pipe.
type loam struct {
	place
	stack *stack.Stack
	outer link.Device
}

func newLoam(at place) (host, error) {
	inner, outer := pipe.New(pipe.Config{
		Depth: 1024, MTU: at.path.mtu(),
		MACs: [2]wire.MAC{{2, 0, 0, 77, 0, at.number}, {2, 0, 0, 77, 1, at.number}},
	})
	s := stack.New(stack.Config{TCP: tcp.Config{MaxReceiveBuffer: bufferSize}})
	if _, err := s.Attach(inner, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		return nil, err
	}
	if err := s.AddAddress("eth0", at.prefix()); err != nil {
		return nil, err
	}
	return &loam{at, s, outer}, nil
}

func (h *loam) device() link.Device { return h.outer }
func (h *loam) Close() error        { return h.stack.Close() }

func (h *loam) listen() (net.Listener, error) {
	return h.stack.Listen("tcp", h.place.listen().String())
}

func (h *loam) dial(ctx context.Context, algorithm string, sendBuffer int) (net.Conn, error) {
	c, err := h.stack.DialContext(ctx, "tcp", h.peer().String())
	if err != nil {
		return nil, err
	}
	err = c.(*stack.TCPConn).SetOptions(func(o *stack.TCPOptions) {
		o.Congestion, o.SendBuffer = algorithm, sendBuffer
	})
	return c, err
}

// kernel is Linux in a network namespace of its own, behind a tap.
type kernel struct {
	place
	do    chan func() // buffer of one: run sends and waits, the thread receives, Close closes it
	outer link.Device
}

// newKernel starts a thread with a network namespace of its own, and creates a tap in it.
func newKernel(name string, at place) (host, error) {
	h := &kernel{place: at, do: make(chan func(), 1)}
	made := make(chan error, 1) // the thread sends once
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		made <- syscall.Unshare(syscall.CLONE_NEWNET)
		for f := range h.do {
			f()
		}
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	var err error
	h.run(func() { err = h.up(name) })
	return h, err
}

// run calls f in the namespace. Sockets that f opens stay in the namespace.
func (h *kernel) run(f func()) {
	done := make(chan struct{}) // closed by the thread
	h.do <- func() {
		defer close(done)
		f()
	}
	<-done
}

// up creates the tap, and allows large socket buffers.
func (h *kernel) up(name string) (err error) {
	for file, text := range map[string]string{
		"tcp_rmem": fmt.Sprint("4096 131072 ", bufferSize), "tcp_wmem": fmt.Sprint("4096 16384 ", bufferSize),
		"tcp_no_metrics_save": "1",
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(text), 0); err != nil {
			return err
		}
	}
	mtu := fmt.Sprint(h.path.mtu())
	if err := ip("tuntap add dev " + name + " mode tap"); err != nil {
		return err
	}
	// The MTU must be set before the device is opened, which reads it.
	if err := ip("link set " + name + " up txqueuelen 10000 mtu " + mtu); err != nil {
		return err
	}
	add := "address add " + h.prefix().String() + " dev " + name
	if h.path.IPv6 {
		add += " nodad"
	}
	if err := ip(add); err != nil {
		return err
	}
	h.outer, err = tap.Open(tap.Config{Name: name, NoOffloads: true})
	return err
}

// ip runs the command ip with arguments that are separated by spaces.
func ip(arguments string) error {
	if out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w\n%s", arguments, err, out)
	}
	return nil
}

func (h *kernel) device() link.Device { return h.outer }

func (h *kernel) Close() error {
	close(h.do)
	return nil
}

func (h *kernel) listen() (l net.Listener, err error) {
	h.run(func() { l, err = net.Listen("tcp", h.place.listen().String()) })
	return l, err
}

func (h *kernel) dial(ctx context.Context, algorithm string, _ int) (c net.Conn, err error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, algorithm)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	h.run(func() { c, err = d.DialContext(ctx, "tcp", h.peer().String()) })
	return c, err
}
