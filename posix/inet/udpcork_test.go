package inet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/link"
	"loam/link/pipe"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
	"loam/wire"
)

const more = linux.MSG_MORE

var onLoopback = map[int]netip.Addr{linux.AF_INET: netip.MustParseAddr("127.0.0.1"), linux.AF_INET6: netip.IPv6Loopback()}

// corkNetwork returns a network with a loopback interface and with one end of a pipe, whose address is 192.0.2.2/24. Nobody
// reads the other end of the pipe until the test does.
func corkNetwork(t *testing.T) (*Network, *pipe.Device) {
	t.Helper()
	s := stack.New(stack.Config{Shards: 2})
	near, far := pipe.New(pipe.Config{Medium: link.IP, Depth: 4})
	t.Cleanup(func() { s.Close(); far.Close() })
	if _, err := s.Attach(near, stack.InterfaceConfig{Name: "eth0"}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddAddress("eth0", netip.MustParsePrefix("192.0.2.2/24")); err != nil {
		t.Fatal(err)
	}
	n := new(Network)
	n.Init(s)
	return n, far
}

// corkTester makes sockets, and fails the test if one of their calls fails.
type corkTester struct {
	*testing.T
	net    *Network
	family int
}

func (t corkTester) check(errno linux.Errno, want linux.Errno, what string) {
	t.Helper()
	if errno != want {
		t.Fatalf("family %d: %s: errno %v, want %v", t.family, what, errno, want)
	}
}

func (t corkTester) socket() *UDPSocket {
	s := newUDP(t.net, t.family, 0)
	t.Cleanup(s.Close)
	return s
}

// bound returns a socket with a port of the loopback interface.
func (t corkTester) bound() *UDPSocket {
	s := t.socket()
	t.check(s.Bind(nil, t.name(netip.AddrPortFrom(onLoopback[t.family], 0))), 0, "bind")
	return s
}

func (t corkTester) connected(to *UDPSocket) *UDPSocket {
	s := t.socket()
	t.check(s.Connect(nil, to.Local()), 0, "connect")
	return s
}

func (t corkTester) set(s *UDPSocket, level, name, value int) {
	t.Helper()
	t.check(s.SetOption(level, name, binary.NativeEndian.AppendUint32(nil, uint32(value))), 0, "setsockopt")
}

func (t corkTester) cork(s *UDPSocket, on int) {
	t.Helper()
	t.set(s, linux.IPPROTO_UDP, linux.UDP_CORK, on)
}

// name returns an address in the family of the test.
func (t corkTester) name(to netip.AddrPort) socket.Address {
	return socket.Address{Family: uint16(t.family), IP: to}
}

// send sends data to an address, or to the peer if the address is the zero Address.
func (t corkTester) send(s *UDPSocket, to socket.Address, data string, flags int, want linux.Errno) {
	t.Helper()
	n, errno := s.Send([]byte(data), socket.Outgoing{To: to, Flags: flags})
	t.check(errno, want, "send")
	if errno == 0 && n != len(data) {
		t.Errorf("%d of %d bytes were sent", n, len(data))
	}
}

// eventually waits until ready returns true.
func (t corkTester) eventually(what string, ready func() bool) {
	t.Helper()
	for range 200000 {
		if ready() {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
	t.Fatalf("family %d: %s: not within 10 seconds", t.family, what)
}

// wants receives the next datagram.
func (t corkTester) wants(s *UDPSocket, want string) {
	t.Helper()
	b, n := make([]byte, 1<<16), 0
	t.eventually("receive", func() bool {
		r, errno := s.Recv(b, 0)
		n = r.N
		return errno == 0
	})
	if got := string(b[:n]); got != want {
		t.Errorf("family %d: received %d bytes, %.40q, want %d, %.40q", t.family, n, got, len(want), want)
	}
}

func forCork(t *testing.T, f func(corkTester)) {
	n, _ := corkNetwork(t)
	for _, family := range []int{linux.AF_INET, linux.AF_INET6} {
		f(corkTester{t, n, family})
	}
}

// A datagram is not held back if the send buffer is full. One that is held back is sent, even if the buffer became full.
func TestCorkedSendsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, far := corkNetwork(t)
		c := corkTester{t, n, linux.AF_INET}
		s := c.socket()
		to := c.name(netip.MustParseAddrPort("192.0.2.1:7"))
		c.set(s, linux.SOL_SOCKET, linux.SO_SNDBUF, 20000)
		data, want := make([]byte, 1000), 0
		for full := false; ; {
			n, errno := s.Send(data, socket.Outgoing{To: to})
			if errno == linux.EAGAIN && full {
				break
			}
			if full = errno == linux.EAGAIN; full {
				synctest.Wait() // until the stack moves no more datagrams from the buffer to the link
				continue
			}
			c.check(errno, 0, "send")
			want += n
		}
		c.send(s, to, "more", more, linux.EAGAIN)
		c.cork(s, 1)
		c.send(s, to, "corked", 0, linux.EAGAIN)
		got := 0
		drain := func() {
			fs := make([]*link.Frame, 4)
			n, err := far.Queues()[0].Recv(fs)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fs[:n] {
				got += f.Len() - wire.IPv4MinLen - wire.UDPLen
				f.Free()
			}
		}
		for s.Events()&file.PollOut == 0 {
			drain()
		}
		c.send(s, to, "corked", 0, 0)
		want += len("corked")
		c.set(s, linux.SOL_SOCKET, linux.SO_SNDBUF, 0) // the minimum, less than what is in the buffer
		c.cork(s, 0)
		for got < want {
			drain()
		}
	})
}

// The error of an earlier datagram is returned by the send whose data would be held back.
func TestCorkedSendsReportErrors(t *testing.T) {
	forCork(t, func(c corkTester) {
		a := c.bound()
		s := c.connected(a)
		a.Close()
		refused := func() {
			c.send(s, socket.Address{}, "first", 0, 0)
			c.eventually("error", func() bool { return s.Events()&file.PollErr != 0 })
		}
		refused()
		c.cork(s, 1)
		c.send(s, socket.Address{}, "held", 0, linux.ECONNREFUSED)
		c.cork(s, 0)
		refused()
		c.send(s, socket.Address{}, "held", more, linux.ECONNREFUSED)
		c.check(s.TakeError(), 0, "error after it was returned")
	})
}

// The first send checks its destination. After an error, nothing is held back.
func TestCorkedDestination(t *testing.T) {
	forCork(t, func(c corkTester) {
		a := c.bound()
		s, to := c.socket(), a.Local()
		nowhere := netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), 7)
		if c.family == linux.AF_INET {
			everyone := netip.AddrPortFrom(netip.MustParseAddr("255.255.255.255"), 7)
			c.send(s, c.name(everyone), "x", more, linux.EACCES)
			subnet := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.255"), 7)
			c.send(s, c.name(subnet), "x", more, linux.EACCES)
		} else {
			nowhere = netip.AddrPortFrom(netip.MustParseAddr("2001:db8::1"), 7)
		}
		c.send(s, c.name(nowhere), "x", more, linux.ENETUNREACH)
		c.send(s, c.name(netip.AddrPortFrom(onLoopback[c.family], 0)), "x", more, linux.EINVAL)
		c.send(s, to, "y", 0, 0)
		c.wants(a, "y")
	})
}

// A datagram that is held back goes to the peer of its first send. As on Linux, connect(2) of an AF_INET socket changes its
// destination, unless it removes the peer.
func TestCorkedPeer(t *testing.T) {
	forCork(t, func(c corkTester) {
		a, b := c.bound(), c.bound()
		s := c.connected(a)
		c.send(s, socket.Address{}, "x", more, 0)
		c.check(s.Connect(nil, socket.Address{}), 0, "connect to AF_UNSPEC")
		c.send(s, socket.Address{}, "y", 0, 0)
		c.wants(a, "xy")

		for _, first := range []socket.Address{{}, a.Local()} {
			c.check(s.Connect(nil, a.Local()), 0, "connect")
			c.send(s, first, "x", more, 0)
			c.check(s.Connect(nil, b.Local()), 0, "connect")
			c.send(s, socket.Address{}, "y", 0, 0)
			if c.family == linux.AF_INET {
				c.wants(b, "xy")
			} else {
				c.wants(a, "xy")
			}
		}
	})
}

// Datagrams of AF_INET6 may be 20 bytes longer than those of AF_INET.
func TestCorkedLength(t *testing.T) {
	forCork(t, func(c corkTester) {
		a := c.bound()
		s := c.connected(a)
		most := stack.MaxUDP
		if c.family == linux.AF_INET6 {
			most = stack.MaxUDP6
		}
		part, rest := string(make([]byte, 65000)), string(make([]byte, most-65000))
		c.send(s, socket.Address{}, part, more, 0)
		c.send(s, socket.Address{}, rest, 0, 0)
		c.wants(a, part+rest)
		c.send(s, socket.Address{}, part, more, 0)
		c.send(s, socket.Address{}, rest+"x", 0, linux.EMSGSIZE)
		c.send(s, socket.Address{}, "after", 0, 0)
		c.wants(a, "after")
	})
}

// A part that makes the datagram longer than the path allows is refused when it is sent, and not when the option is cleared.
func TestCorkedPathLimit(t *testing.T) {
	const discoverDo = 2 // IP_PMTUDISC_DO: datagrams are not fragmented
	n, _ := corkNetwork(t)
	c := corkTester{t, n, linux.AF_INET}
	s := c.socket()
	c.set(s, linux.IPPROTO_IP, linux.IP_MTU_DISCOVER, discoverDo)
	c.check(s.Connect(nil, c.name(netip.MustParseAddrPort("192.0.2.1:7"))), 0, "connect")
	c.send(s, socket.Address{}, string(make([]byte, 1473)), more, linux.EMSGSIZE)
	c.send(s, socket.Address{}, string(make([]byte, 1000)), more, 0)
	c.send(s, socket.Address{}, string(make([]byte, 473)), more, linux.EMSGSIZE)
}

// No byte is lost if several threads send parts of a datagram.
func TestCorkedThreads(t *testing.T) {
	forCork(t, func(c corkTester) {
		const threads, sends = 4, 4
		a := c.bound()
		s := c.connected(a)
		for range 300 {
			var wg sync.WaitGroup
			for range threads {
				wg.Go(func() {
					for range sends {
						if n, errno := s.Send([]byte("x"), socket.Outgoing{Flags: more}); n != 1 || errno != 0 {
							t.Errorf("send: %d, %v", n, errno)
						}
					}
				})
			}
			wg.Wait()
			c.send(s, socket.Address{}, "", 0, 0)
			c.wants(a, string(bytes.Repeat([]byte("x"), threads*sends)))
			if t.Failed() {
				return
			}
		}
	})
}

// Nothing stays held back when UDP_CORK was cleared while other threads were sending.
func TestUncorkedByThread(t *testing.T) {
	forCork(t, func(c corkTester) {
		const threads, sends = 3, 20
		a := c.bound()
		s := c.connected(a)
		b := make([]byte, 1<<16)
		for range 100 {
			var wg sync.WaitGroup
			for range threads {
				wg.Go(func() {
					for range sends {
						if n, errno := s.Send([]byte("x"), socket.Outgoing{}); n != 1 || errno != 0 {
							t.Errorf("send: %d, %v", n, errno)
						}
					}
				})
			}
			wg.Go(func() {
				for range sends {
					c.cork(s, 1)
					c.cork(s, 0)
				}
			})
			wg.Wait()
			got := 0
			c.eventually("receive", func() bool {
				for {
					r, errno := a.Recv(b, 0)
					if errno != 0 {
						return got >= threads*sends
					}
					got += r.N
				}
			})
			if got != threads*sends {
				t.Fatalf("%d bytes arrived, want %d", got, threads*sends)
			}
		}
	})
}
