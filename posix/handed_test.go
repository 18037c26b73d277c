package posix

import (
	"bytes"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// fakeTCP is a fake connection of the host. Data written to it can be read back.
type fakeTCP struct {
	t *testing.T

	mu      sync.Mutex
	held    []byte
	reads   int
	closes  int
	abort   bool
	refused bool
	set     map[socket.OptionName][]byte
	look    func(Events) bool
	busy    atomic.Int32 // calls in progress
}

// call counts a call as in progress, until the returned function is called.
func (f *fakeTCP) call() func() {
	f.busy.Add(1)
	f.mu.Lock()
	if f.closes > 0 {
		f.t.Error("a call of what is closed")
	}
	return func() {
		f.mu.Unlock()
		f.busy.Add(-1)
	}
}

func (f *fakeTCP) Read(b []byte) (int, Errno) {
	defer f.call()()
	f.reads++
	if len(f.held) == 0 {
		return 0, linux.EAGAIN
	}
	n := copy(b, f.held)
	f.held = f.held[n:]
	return n, 0
}

func (f *fakeTCP) Write(b []byte) (int, Errno) {
	done := f.call()
	f.held = append(f.held, b...)
	look := f.look
	done()
	if look != nil {
		look(PollIn)
	}
	return len(b), 0
}

func (f *fakeTCP) Recv(b []byte, flags int) (int, Errno) { return f.Read(b) }
func (f *fakeTCP) Send(b []byte, flags int) (int, Errno) { return f.Write(b) }

func (f *fakeTCP) Events() Events {
	defer f.call()()
	if len(f.held) > 0 {
		return PollIn | PollOut
	}
	return PollOut
}

func (f *fakeTCP) Shutdown(how int) Errno { f.call()(); return 0 }
func (f *fakeTCP) Queued(int) int         { defer f.call()(); return len(f.held) }
func (f *fakeTCP) Descriptor() int        { return 1000 }

func (f *fakeTCP) Option(level, name int, value []byte) (int, Errno) {
	defer f.call()()
	return copy(value, f.set[socket.OptionName{Level: level, Name: name}]), 0
}

func (f *fakeTCP) SetOption(level, name int, value []byte) Errno {
	defer f.call()()
	if f.set == nil {
		f.set = map[socket.OptionName][]byte{}
	}
	f.set[socket.OptionName{Level: level, Name: name}] = value
	return 0
}

func (f *fakeTCP) Watch(look func(Events) bool) Errno {
	done := f.call()
	f.look = look
	done()
	look(readAndWrite)
	return 0
}

const readAndWrite = PollIn | PollOut

func (f *fakeTCP) Close(abort, refused bool) {
	if f.busy.Load() > 0 {
		f.t.Error("closed under a call")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	f.abort, f.refused = abort, refused
}

func (f *fakeTCP) wantClosed(abort, refused bool) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closes != 1 || f.abort != abort || f.refused != refused {
		f.t.Errorf("closed %d times, by a reset: %v, refused: %v; want once, %v, %v", f.closes, f.abort, f.refused, abort, refused)
	}
}

var (
	ownAddress     = netip.MustParseAddr("10.0.2.15")
	gatewayAddress = netip.MustParseAddr("10.0.2.2")
)

// handedProcess returns a process that listens on an address with a backlog.
func handedProcess(t *testing.T, at netip.AddrPort, backlog int) (p *Process, listener int) {
	t.Helper()
	network := stack.New(stack.Config{})
	t.Cleanup(func() { network.Close() })
	p = New(Options{Network: network})
	fd, errno := p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0)
	ok(t, errno)
	ok(t, p.SetSockOpt(fd, linux.SOL_SOCKET, linux.SO_REUSEADDR, socket.IntValue(1)))
	ok(t, p.Bind(fd, socket.Inet(at)))
	ok(t, p.Listen(fd, backlog))
	return p, fd
}

// handTo hands a host connection over to the process, as if client had connected to port 80.
func handTo(t *testing.T, p *Process, client uint16) *fakeTCP {
	f := &fakeTCP{t: t}
	p.Hand(f, Way{At: netip.AddrPortFrom(ownAddress, 80), From: netip.AddrPortFrom(gatewayAddress, client)})
	return f
}

var anyPort80 = netip.AddrPortFrom(netip.IPv4Unspecified(), 80)

func TestHandedIsAccepted(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	ok(t, p.SetSockOpt(l, linux.SOL_SOCKET, linux.SO_KEEPALIVE, socket.IntValue(1)))
	var told Events
	ok(t, p.Attach(l, func(e Events) { told |= e }))
	f := handTo(t, p, 20000)
	if told&PollIn == 0 {
		t.Error("who waits for the listening socket is not told")
	}
	fd, peer, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	if want := netip.AddrPortFrom(gatewayAddress, 20000); peer.IP != want {
		t.Errorf("from %v, not %v", peer.IP, want)
	}
	if name, _ := p.GetSockName(fd); name.IP != netip.AddrPortFrom(ownAddress, 80) {
		t.Errorf("to %v", name.IP)
	}
	if v, errno := p.GetSockOpt(fd, linux.SOL_SOCKET, linux.SO_REUSEADDR); errno != 0 || v[0] != 1 {
		t.Errorf("SO_REUSEADDR is %v, %v", v, errno)
	}
	if v := f.set[socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_KEEPALIVE}]; len(v) == 0 || v[0] != 1 {
		t.Errorf("SO_KEEPALIVE of the listening socket has become %v", v)
	}
	if _, _, errno := p.Accept4(l, 0); errno != linux.EAGAIN {
		t.Errorf("a second one: %v", errno)
	}
	ok(t, p.Close(fd))
	f.wantClosed(false, false)
}

// For a host connection of IPv4 or IPv6 accepted by an AF_INET6 socket, options have the default values
// of Linux.
func TestHandedOptionsOfIPv6(t *testing.T) {
	network := stack.New(stack.Config{})
	defer network.Close()
	p := New(Options{Network: network})
	l, errno := p.Socket(linux.AF_INET6, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0)
	ok(t, errno)
	ok(t, p.Bind(l, Address{Family: linux.AF_INET6, IP: netip.AddrPortFrom(netip.IPv6Unspecified(), 80)}))
	ok(t, p.Listen(l, 5))
	handTo(t, p, 20000)
	fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	for _, set := range []int{0, 7, -1} {
		want := socket.IntValue(64)
		if set > 0 {
			want = socket.IntValue(set)
		}
		if set != 0 {
			ok(t, p.SetSockOpt(fd, linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS, socket.IntValue(set)))
		}
		if v, errno := p.GetSockOpt(fd, linux.IPPROTO_IPV6, linux.IPV6_UNICAST_HOPS); errno != 0 || !bytes.Equal(v, want) {
			t.Errorf("the hop limit, set to %d, is %v, %v", set, v, errno)
		}
	}
	ok(t, p.Close(fd))
	ok(t, p.Close(l))
}

// A host connection keeps the host's congestion control algorithm.
func TestHandedCongestion(t *testing.T) {
	network := stack.New(stack.Config{})
	defer network.Close()
	p := New(Options{Network: network})
	l, errno := p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0)
	ok(t, errno)
	ok(t, p.Bind(l, Address{Family: linux.AF_INET, IP: netip.AddrPortFrom(netip.IPv4Unspecified(), 80)}))
	ok(t, p.Listen(l, 5))
	f := handTo(t, p, 20000)
	f.SetOption(linux.IPPROTO_TCP, linux.TCP_CONGESTION, append([]byte("bbr"), make([]byte, 13)...))
	fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	ok(t, p.SetSockOpt(fd, linux.IPPROTO_TCP, linux.TCP_CONGESTION, []byte("bbr")))
	wantErrno(t, p.SetSockOpt(fd, linux.IPPROTO_TCP, linux.TCP_CONGESTION, []byte("cubic")), linux.ENOENT, "another")
	wantErrno(t, p.SetSockOpt(fd, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)), linux.EINVAL, "connected already")
	ok(t, p.Close(fd))
	ok(t, p.Close(l))
}

// A connection is reset without a listener: none at all, none for the address, or a closed one.
func TestHandedIsRefused(t *testing.T) {
	p, l := handedProcess(t, netip.MustParseAddrPort("127.0.0.1:80"), 5)
	handTo(t, p, 1).wantClosed(true, true)
	ok(t, p.Close(l))
	p, l = handedProcess(t, anyPort80, 5)
	waiting := handTo(t, p, 1)
	ok(t, p.Close(l))
	waiting.wantClosed(true, false)
	handTo(t, p, 2).wantClosed(true, true)
	p, l = handedProcess(t, anyPort80, 5)
	waiting = handTo(t, p, 1)
	ok(t, p.Shutdown(l, linux.SHUT_RD))
	waiting.wantClosed(true, false)
	handTo(t, p, 2).wantClosed(true, true)
}

// Connections are distributed among sockets that share a port, by the client's port.
func TestHandedToSeveral(t *testing.T) {
	network := stack.New(stack.Config{})
	t.Cleanup(func() { network.Close() })
	p := New(Options{Network: network})
	var listeners [2]int
	for i := range listeners {
		fd, errno := p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0)
		ok(t, errno)
		ok(t, p.SetSockOpt(fd, linux.SOL_SOCKET, linux.SO_REUSEPORT, socket.IntValue(1)))
		ok(t, p.Bind(fd, socket.Inet(anyPort80)))
		ok(t, p.Listen(fd, 10))
		listeners[i] = fd
	}
	for client := range uint16(10) {
		handTo(t, p, client+1)
	}
	for _, l := range listeners {
		for n := 0; ; n++ {
			if _, _, errno := p.Accept4(l, 0); errno != 0 {
				if n != 5 {
					t.Errorf("%d of 10 connections", n)
				}
				break
			}
		}
	}
}

// A process waits for a host connection by the connection's own descriptor, which Go's runtime poller watches. A
// second descriptor of the connection, and other waiters, wait by Watch.
func TestHandedWaiting(t *testing.T) {
	p, l := handedProcess(t, anyPort80, 5)
	f := handTo(t, p, 1)
	fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
	ok(t, errno)
	again, errno := p.Dup(fd)
	ok(t, errno)
	if n, is := p.AttachHost(fd, new(Arrivals)); !is || n != 1000 {
		t.Errorf("attached: %d, %v", n, is)
	}
	if _, is := p.AttachHost(again, new(Arrivals)); is || f.look != nil {
		t.Errorf("attached twice: %v; watched before anybody waits: %v", is, f.look != nil)
	}
	var told Events
	ok(t, p.Attach(again, func(e Events) { told |= e }))
	if f.look == nil {
		t.Fatal("not watched")
	}
	told = 0
	if _, errno := p.Write(fd, []byte("x")); errno != 0 || told&PollIn == 0 {
		t.Errorf("%v; told %#x", errno, told)
	}
	if _, is := p.DetachHost(again); is {
		t.Error("detached what was not attached")
	}
	ok(t, p.Detach(again))
	if n, is := p.DetachHost(fd); !is || n != 1000 {
		t.Errorf("detached: %d, %v", n, is)
	}
	if _, is := p.AttachHost(again, new(Arrivals)); !is {
		t.Error("not attached, though nobody is")
	}
	ok(t, p.Close(fd))
	ok(t, p.Close(again))
	f.wantClosed(false, false)
	if !f.look(PollIn) {
		t.Error("it is still watched")
	}
}

// A close waits for calls in progress on the host's connection.
func TestHandedClosedInUse(t *testing.T) {
	for range 100 {
		p, l := handedProcess(t, anyPort80, 5)
		f := handTo(t, p, 1)
		fd, _, errno := p.Accept4(l, linux.SOCK_NONBLOCK)
		ok(t, errno)
		o := p.Opened(fd)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 100 {
					p.WriteOpened(o, []byte("x"))
					p.ReadOpened(o, make([]byte, 1))
					o.Events()
				}
			})
		}
		wg.Go(func() { p.Close(fd) })
		wg.Wait()
		f.wantClosed(false, false)
	}
}
