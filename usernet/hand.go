package usernet

import (
	"net"
	"os"
	"sync"
	"syscall"

	"loam/usernet/hand"
)

// Connections of published ports that are handed to the program. Where it runs as a
// process of this host, neither this process nor a second TCP need stand between it and
// its client: the program gets the descriptor of the connection that was accepted here,
// and the kernel does the rest. What stays here is whether there is room for the
// connection, and what is counted.
//
// The program is not trusted: it names connections that have ended by their client's
// port, and what names none counts for nothing.

// Ports of the gateway's that stand for the clients of such connections. They are below
// those that its stack takes for connections of its own (stack/port).
const (
	firstClient = 16384
	lastClient  = 32767
)

// handing is the gateway's side of a socket to the program.
type handing struct {
	conn *net.UnixConn

	mu   sync.Mutex
	out  map[uint16]uint16 // the program's ports of connections that it has, by their clients'; nil: it has gone
	next uint16            // the port to try next
}

func newHanding(conn *net.UnixConn) *handing {
	return &handing{conn: conn, out: make(map[uint16]uint16), next: firstClient}
}

// take finds a port for a client of a port of the program; false: the program has gone, or
// no port is free.
func (h *handing) take(to uint16) (uint16, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out == nil {
		return 0, false
	}
	for range lastClient - firstClient + 1 {
		port := h.next
		if h.next++; h.next > lastClient {
			h.next = firstClient
		}
		if _, taken := h.out[port]; !taken {
			h.out[port] = to
			return port, true
		}
	}
	return 0, false
}

// give gives a client's port back, and returns that of the program; false: no connection
// has it.
func (h *handing) give(port uint16) (to uint16, taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to, taken = h.out[port]
	delete(h.out, port)
	return to, taken
}

// end is for a program that has gone; it returns how many connections it had.
func (h *handing) end() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.out)
	h.out = nil
	return n
}

// startHanding has the connections of all forwards to the program be handed over.
func (g *Gateway) startHanding() (err error) {
	if g.handing == nil {
		return nil
	}
	g.wg.Go(g.hearEnds)
	for i := range g.published.tcp {
		if p := &g.published.tcp[i]; p.guest.Addr() == g.config.Guest {
			if p.plain, err = p.listener.File(); err != nil {
				return err
			}
		}
	}
	return nil
}

// acceptHost accepts a connection of a socket that listens, as the kernel gives it, without the options that
// package net would set.
func acceptHost(l syscall.Conn) (fd int, err error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return -1, err
	}
	waited := raw.Read(func(listener uintptr) bool {
		fd, _, err = syscall.Accept4(int(listener), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		return err != syscall.EAGAIN && err != syscall.EINTR && err != syscall.ECONNABORTED
	})
	if waited != nil {
		return -1, waited
	}
	return fd, err
}

// resetHost ends with a reset a connection that has only a descriptor.
func resetHost(fd int) {
	syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	syscall.Close(fd)
}

// handConn hands a connection over and keeps its place among the connections until the
// program says that it has ended. It waits while the program does not take what it is
// handed; who connects then waits with the kernel.
func (g *Gateway) handConn(to uint16, fd int) {
	g.tally.count(PublishTCP)
	port, ok := g.handing.take(to)
	if !ok {
		g.connections.give()
		g.tally.count(PublishFailed)
		resetHost(fd)
		return
	}
	message := hand.Connection{Port: to, Client: port}.Append(nil)
	_, _, err := g.handing.conn.WriteMsgUnix(message, syscall.UnixRights(fd), nil)
	if err == nil {
		syscall.Close(fd)
		g.tally.count(PublishHanded)
		return
	}
	resetHost(fd)
	if _, taken := g.handing.give(port); taken { // else it went with the program
		g.connections.give()
		g.tally.count(PublishFailed)
	}
}

// hearEnds is told of connections that have ended, until the program has gone.
func (g *Gateway) hearEnds() {
	b := make([]byte, os.Getpagesize())
	for {
		n, err := g.handing.conn.Read(b)
		if err != nil || n == 0 {
			break
		}
		for rest := b[:n]; ; {
			end, more, ok := hand.NextEnd(rest)
			if !ok {
				break
			}
			g.ended(end)
			rest = more
		}
	}
	for range g.handing.end() {
		g.connections.give()
	}
}

// ended is told of one.
func (g *Gateway) ended(e hand.End) {
	port, taken := g.handing.give(e.Client)
	if !taken {
		return
	}
	g.connections.give()
	if e.Refused {
		g.publishFailed(port)
	} else if e.Reset {
		g.tally.count(TCPResets)
	}
	g.tally[TCPBytesIn].Add(e.In)
	g.tally[TCPBytesOut].Add(e.Out)
}
