package stack

import (
	"io"
	"net"
	"net/netip"
	"time"

	"loam/stack/socket"
)

// The blocking calls of sockets, with the types of package net: TCPConn is a net.Conn, TCPListener a net.Listener, UDPConn and
// RawConn both a net.PacketConn and a net.Conn. Each call tries the operation. While it would block, the call waits until the
// shard signals the reading or the writing side of the socket, and tries again. dial.go makes sockets from address strings.

var (
	_ net.Conn       = (*TCPConn)(nil)
	_ net.Listener   = (*TCPListener)(nil)
	_ net.Conn       = (*UDPConn)(nil)
	_ net.PacketConn = (*UDPConn)(nil)
	_ net.Conn       = (*RawConn)(nil)
	_ net.PacketConn = (*RawConn)(nil)
)

// opError wraps an error in a net.OpError as package net does. io.EOF is returned
// unwrapped, and ErrClosed becomes net.ErrClosed.
func opError(op, network string, source, addr net.Addr, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if err == ErrClosed {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}

func (c *TCPConn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return opError(op, "tcp", c.LocalAddr(), c.RemoteAddr(), err)
}

// Read implements net.Conn.
func (c *TCPConn) Read(p []byte) (int, error) {
	n, err := socket.Await(&c.readers, func() (int, error) { return c.TryRead(p) })
	return n, c.opError("read", err)
}

// Write implements net.Conn. It returns when all of p is in the send buffer. Concurrent calls are serialized: the bytes of one
// call are never interleaved with the bytes of another.
func (c *TCPConn) Write(p []byte) (int, error) {
	c.turn.Lock() // when the first of several writers fails, the next one tries, and fails for the same reason
	defer c.turn.Unlock()
	done := 0
	for {
		n, err := socket.Await(&c.writers, func() (int, error) { return c.TryWrite(p[done:]) })
		done += n
		if err != nil || done == len(p) {
			return done, c.opError("write", err)
		}
	}
}

// LocalAddr implements net.Conn.
func (c *TCPConn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr implements net.Conn.
func (c *TCPConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SetDeadline implements net.Conn.
func (c *TCPConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *TCPConn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readers, t) }

// SetWriteDeadline implements net.Conn.
func (c *TCPConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writers, t) }

func (c *TCPConn) setDeadline(w *socket.Waiter, t time.Time) error {
	return c.opError("set", w.SetDeadline(t))
}

// SetNoDelay works like the method of net.TCPConn.
func (c *TCPConn) SetNoDelay(on bool) error {
	return c.SetOptions(func(o *TCPOptions) { o.Delay = !on })
}

// SetKeepAlive works like the method of net.TCPConn.
func (c *TCPConn) SetKeepAlive(on bool) error {
	return c.SetOptions(func(o *TCPOptions) { o.KeepAlive = on })
}

// SetKeepAlivePeriod works like the method of net.TCPConn.
func (c *TCPConn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetOptions(func(o *TCPOptions) { o.KeepAliveIdle, o.KeepAliveInterval = d, d })
}

// SetLinger works like the method of net.TCPConn: with 0 seconds, Close resets the
// connection; a negative value restores the default.
func (c *TCPConn) SetLinger(seconds int) error {
	return c.SetOptions(func(o *TCPOptions) {
		o.Linger, o.LingerTime = seconds >= 0, time.Duration(seconds)*time.Second
	})
}

// waitConnected waits until the handshake of an active open has succeeded or failed.
func (c *TCPConn) waitConnected() error {
	_, err := socket.Await(&c.writers, func() (struct{}, error) {
		status := c.status.Load()
		switch {
		case status&statusConnected != 0:
			return struct{}{}, nil
		case status&statusClosed != 0:
			return struct{}{}, ErrClosed
		case status&statusEnded != 0:
			if err := c.takeFailure(); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, ErrReset
		}
		return struct{}{}, ErrWouldBlock
	})
	return err
}

// AcceptTCP waits for the next connection and returns it.
func (l *TCPListener) AcceptTCP() (*TCPConn, error) {
	c, err := socket.Await(&l.acceptors, l.TryAccept)
	if err != nil {
		return nil, opError("accept", "tcp", nil, l.Addr(), err)
	}
	return c, nil
}

// Accept implements net.Listener.
func (l *TCPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Addr implements net.Listener.
func (l *TCPListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.LocalAddrPort()) }

// SetDeadline works like the method of net.TCPListener: after t, Accept returns an error.
func (l *TCPListener) SetDeadline(t time.Time) error {
	return opError("set", "tcp", nil, l.Addr(), l.acceptors.SetDeadline(t))
}

func (c *datagramSocket) opError(op string, to netip.AddrPort, err error) error {
	if err == nil {
		return nil
	}
	var addr net.Addr
	if to.IsValid() {
		addr = socket.NetAddr(c.network, to)
	}
	return opError(op, c.network, c.LocalAddr(), addr, err)
}

// received is the result type of await for a datagram.
type received struct {
	n    int
	info Datagram
}

// ReadDatagram waits for a datagram and copies it to p. See TryReadFrom.
func (c *datagramSocket) ReadDatagram(p []byte) (int, Datagram, error) {
	r, err := socket.Await(&c.readers, func() (received, error) {
		n, info, err := c.TryReadFrom(p)
		return received{n, info}, err
	})
	return r.n, r.info, c.opError("read", c.RemoteAddrPort(), err)
}

// ReadFromUDPAddrPort works like the method of net.UDPConn.
func (c *UDPConn) ReadFromUDPAddrPort(p []byte) (int, netip.AddrPort, error) {
	n, info, err := c.ReadDatagram(p)
	return n, info.From, err
}

// ReadFrom implements net.PacketConn.
func (c *datagramSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	n, info, err := c.ReadDatagram(p)
	if err != nil {
		return n, nil, err
	}
	return n, socket.NetAddr(c.network, info.From), nil
}

// Read implements net.Conn.
func (c *datagramSocket) Read(p []byte) (int, error) {
	n, _, err := c.ReadDatagram(p)
	return n, err
}

// WriteToUDPAddrPort works like the method of net.UDPConn. It blocks while the send buffer is full.
func (c *UDPConn) WriteToUDPAddrPort(p []byte, to netip.AddrPort) (int, error) {
	n, err := socket.Await(&c.writers, func() (int, error) { return c.TryWriteTo(p, to) })
	if !to.IsValid() {
		to = c.RemoteAddrPort()
	}
	return n, c.opError("write", to, err)
}

// WriteTo implements net.PacketConn. addr must be a *net.UDPAddr.
func (c *UDPConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.UDPAddr)
	if !ok || to == nil {
		return 0, c.opError("write", netip.AddrPort{}, ErrInvalid)
	}
	return c.WriteToUDPAddrPort(p, to.AddrPort())
}

// Write implements net.Conn for a connected socket.
func (c *UDPConn) Write(p []byte) (int, error) {
	return c.WriteToUDPAddrPort(p, netip.AddrPort{})
}

// LocalAddr implements net.Conn and net.PacketConn.
func (c *datagramSocket) LocalAddr() net.Addr { return socket.NetAddr(c.network, c.LocalAddrPort()) }

// RemoteAddr implements net.Conn. It returns nil if the socket is not connected.
func (c *datagramSocket) RemoteAddr() net.Addr {
	if p := c.RemoteAddrPort(); p.IsValid() {
		return socket.NetAddr(c.network, p)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *datagramSocket) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *datagramSocket) SetReadDeadline(t time.Time) error {
	return c.opError("set", c.RemoteAddrPort(), c.readers.SetDeadline(t))
}

// SetWriteDeadline implements net.Conn.
func (c *datagramSocket) SetWriteDeadline(t time.Time) error {
	return c.opError("set", c.RemoteAddrPort(), c.writers.SetDeadline(t))
}

// WriteTo implements net.PacketConn. addr must be a *net.IPAddr.
func (c *RawConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.IPAddr)
	if !ok || to == nil {
		return 0, c.opError("write", netip.AddrPort{}, ErrInvalid)
	}
	ip, _ := netip.AddrFromSlice(to.IP)
	return c.writeTo(p, netip.AddrPortFrom(ip.Unmap().WithZone(to.Zone), 0))
}

// Write implements net.Conn for a connected socket.
func (c *RawConn) Write(p []byte) (int, error) { return c.writeTo(p, netip.AddrPort{}) }

// writeTo sends a packet and blocks while the send buffer is full.
func (c *RawConn) writeTo(p []byte, to netip.AddrPort) (int, error) {
	n, err := socket.Await(&c.writers, func() (int, error) { return c.TryWriteTo(p, to) })
	return n, c.opError("write", to, err)
}

// LocalAddr implements net.Conn and net.PacketConn.
func (c *RawConn) LocalAddr() net.Addr { return socket.NetAddr(c.network, c.LocalAddrPort()) }
