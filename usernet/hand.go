package usernet

import (
	"net"
	"os"
	"sync"
	"syscall"

	"loam/usernet/hand"
)

// This file passes the connections to published ports to the guest's program (Config.Program). If the guest is a
// process of this host, its connections need not pass through the gateway's process and a second TCP stack. The program
// receives the descriptor of an accepted connection and uses it directly. The gateway still enforces the connection
// limit and counts connections and bytes.
//
// The program is not trusted. It reports the end of a connection by the client port that the gateway has assigned; a
// report with an unknown port is ignored.

// Range of ports of the gateway that stand for the clients of passed connections. They are below the ports that the
// stack selects for its own connections (stack/port).
const (
	firstClient = 16384
	lastClient  = 32767
)

// handing is the gateway's side of the socket to the guest's program (Config.Program).
type handing struct {
	conn *net.UnixConn

	mu   sync.Mutex
	out  map[uint16]uint16 // the program's port of each open connection, by client port; nil: the program has exited
	next uint16            // the client port to try next
}

func newHanding(conn *net.UnixConn) *handing {
	return &handing{conn: conn, out: make(map[uint16]uint16), next: firstClient}
}

// take allocates a client port for a connection to a port of the program (to). It returns
// false if the program has exited or no port is free.
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

// give releases a client port and returns the program's port of its connection. It
// returns false if the port is not allocated.
func (h *handing) give(port uint16) (to uint16, taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to, taken = h.out[port]
	delete(h.out, port)
	return to, taken
}

// end marks the program as exited and returns the number of its open connections.
func (h *handing) end() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.out)
	h.out = nil
	return n
}

// startHanding changes all TCP forwards to Config.Guest so that their connections are passed to the program.
func (g *Gateway) startHanding() (err error) {
	if g.handing == nil {
		return nil
	}
	g.wg.Go(g.receiveEnds)
	for i := range g.published.tcp {
		if p := &g.published.tcp[i]; p.guest.Addr() == g.config.Guest {
			if p.plain, err = p.listener.File(); err != nil {
				return err
			}
		}
	}
	return nil
}

// acceptHost accepts a connection without setting the socket options that package net
// would set. It returns a non-blocking descriptor that the caller owns.
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

// resetHost closes a connection, given by its descriptor, with a reset.
func resetHost(fd int) {
	syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	syscall.Close(fd)
}

// handConn passes a connection to the program. The connection counts against the limit until the program reports its
// end. If the program does not read its messages, handConn blocks; new clients then wait in the kernel's accept queue.
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
	if _, taken := g.handing.give(port); taken { // if taken is false, handing.end has already released the client port
		g.connections.give()
		g.tally.count(PublishFailed)
	}
}

// receiveEnds processes the program's reports of ended connections until the program exits.
func (g *Gateway) receiveEnds() {
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

// ended processes one report. A report about an unknown port is ignored.
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
