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

func address(number byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, number}) }

// peer returns the address of the other end.
func peer(number byte) netip.AddrPort { return netip.AddrPortFrom(address(3-number), port) }

// loam is the stack of this tree on one end of a pipe.
type loam struct {
	stack  *stack.Stack
	outer  link.Device
	number byte
}

func newLoam(number byte) (host, error) {
	inner, outer := pipe.New(pipe.Config{Depth: 1024, MACs: [2]wire.MAC{{2, 0, 0, 77, 0, number}, {2, 0, 0, 77, 1, number}}})
	s := stack.New(stack.Config{TCP: tcp.Config{MaxReceiveBuffer: bufferSize}})
	if _, err := s.Attach(inner, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		return nil, err
	}
	if err := s.AddAddress("eth0", netip.PrefixFrom(address(number), 24)); err != nil {
		return nil, err
	}
	return &loam{s, outer, number}, nil
}

func (h *loam) device() link.Device { return h.outer }
func (h *loam) Close() error        { return h.stack.Close() }

func (h *loam) listen() (net.Listener, error) {
	return h.stack.Listen("tcp", netip.AddrPortFrom(address(h.number), port).String())
}

func (h *loam) dial(ctx context.Context, algorithm string, sendBuffer int) (net.Conn, error) {
	c, err := h.stack.DialContext(ctx, "tcp", peer(h.number).String())
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
	do     chan func() // buffer of one: run sends and waits, the thread receives, Close closes it
	outer  link.Device
	number byte
}

// newKernel starts a thread with a network namespace of its own, and creates a tap in it.
func newKernel(name string, number byte) (host, error) {
	h := &kernel{do: make(chan func(), 1), number: number}
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
	if h.outer, err = tap.Open(tap.Config{Name: name, NoOffloads: true}); err != nil {
		return err
	}
	for _, command := range []string{
		"link set " + name + " up txqueuelen 10000",
		"address add " + address(h.number).String() + "/24 dev " + name,
	} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w\n%s", command, err, out)
		}
	}
	return nil
}

func (h *kernel) device() link.Device { return h.outer }

func (h *kernel) Close() error {
	close(h.do)
	return nil
}

func (h *kernel) listen() (l net.Listener, err error) {
	h.run(func() { l, err = net.Listen("tcp", netip.AddrPortFrom(address(h.number), port).String()) })
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
	h.run(func() { c, err = d.DialContext(ctx, "tcp4", peer(h.number).String()) })
	return c, err
}
