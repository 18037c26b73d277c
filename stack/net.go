package stack

import (
	"io"
	"net"
	"net/netip"
	"time"
)

// The blocking side of sockets, in the terms of package net: TCPConn is a
// net.Conn, TCPListener a net.Listener, UDPConn and RawConn net.PacketConn and net.Conn.
// Each call tries, and waits for the doorbell of its direction as long as
// trying would block. Making sockets from strings is in dial.go.

var (
	_ net.Conn       = (*TCPConn)(nil)
	_ net.Listener   = (*TCPListener)(nil)
	_ net.Conn       = (*UDPConn)(nil)
	_ net.PacketConn = (*UDPConn)(nil)
	_ net.Conn       = (*RawConn)(nil)
	_ net.PacketConn = (*RawConn)(nil)
)

// opError wraps an error as package net does. io.EOF stays bare.
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
	n, err := await(&c.readers, func() (int, error) { return c.TryRead(p) })
	return n, c.opError("read", err)
}

// Write implements net.Conn: it returns when all of p is in the send buffer. What
// several goroutines write at once is sent one after the other.
func (c *TCPConn) Write(p []byte) (int, error) {
	c.turn.Lock() // whatever ends the wait of its holder ends ours next
	defer c.turn.Unlock()
	done := 0
	for {
		n, err := await(&c.writers, func() (int, error) { return c.TryWrite(p[done:]) })
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

func (c *TCPConn) setDeadline(w *waiter, t time.Time) error {
	return c.opError("set", w.setDeadline(t))
}

// SetNoDelay is net.TCPConn's.
func (c *TCPConn) SetNoDelay(on bool) error {
	return c.SetOptions(func(o *TCPOptions) { o.Delay = !on })
}

// SetKeepAlive is net.TCPConn's.
func (c *TCPConn) SetKeepAlive(on bool) error {
	return c.SetOptions(func(o *TCPOptions) { o.KeepAlive = on })
}

// SetKeepAlivePeriod is net.TCPConn's.
func (c *TCPConn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetOptions(func(o *TCPOptions) { o.KeepAliveIdle, o.KeepAliveInterval = d, d })
}

// SetLinger is net.TCPConn's: 0 seconds has Close reset the connection, less
// undoes it.
func (c *TCPConn) SetLinger(seconds int) error {
	return c.SetOptions(func(o *TCPOptions) {
		o.Linger, o.LingerTime = seconds >= 0, time.Duration(seconds)*time.Second
	})
}

// waitConnected waits until the handshake of an active open has ended.
func (c *TCPConn) waitConnected() error {
	_, err := await(&c.writers, func() (struct{}, error) {
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

// AcceptTCP waits for a connection.
func (l *TCPListener) AcceptTCP() (*TCPConn, error) {
	c, err := await(&l.acceptors, l.TryAccept)
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

// SetDeadline is net.TCPListener's: Accept returns an error when t has passed.
func (l *TCPListener) SetDeadline(t time.Time) error {
	return opError("set", "tcp", nil, l.Addr(), l.acceptors.setDeadline(t))
}

func (c *datagramSocket) opError(op string, to netip.AddrPort, err error) error {
	if err == nil {
		return nil
	}
	var addr net.Addr
	if to.IsValid() {
		addr = netAddr(c.network, to)
	}
	return opError(op, c.network, c.LocalAddr(), addr, err)
}

// received is what await carries for a datagram.
type received struct {
	n    int
	info Datagram
}

// ReadDatagram waits for a datagram: see TryReadFrom.
func (c *datagramSocket) ReadDatagram(p []byte) (int, Datagram, error) {
	r, err := await(&c.readers, func() (received, error) {
		n, info, err := c.TryReadFrom(p)
		return received{n, info}, err
	})
	return r.n, r.info, c.opError("read", c.RemoteAddrPort(), err)
}

// ReadFromUDPAddrPort is net.UDPConn's.
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
	return n, netAddr(c.network, info.From), nil
}

// Read implements net.Conn.
func (c *datagramSocket) Read(p []byte) (int, error) {
	n, _, err := c.ReadDatagram(p)
	return n, err
}

// WriteToUDPAddrPort is net.UDPConn's. It waits while the device is full.
func (c *UDPConn) WriteToUDPAddrPort(p []byte, to netip.AddrPort) (int, error) {
	n, err := await(&c.writers, func() (int, error) { return c.TryWriteTo(p, to) })
	if !to.IsValid() {
		to = c.RemoteAddrPort()
	}
	return n, c.opError("write", to, err)
}

// WriteTo implements net.PacketConn. addr is a *net.UDPAddr.
func (c *UDPConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.UDPAddr)
	if !ok || to == nil {
		return 0, c.opError("write", netip.AddrPort{}, ErrInvalid)
	}
	return c.WriteToUDPAddrPort(p, to.AddrPort())
}

// Write implements net.Conn, of a connected socket.
func (c *UDPConn) Write(p []byte) (int, error) {
	return c.WriteToUDPAddrPort(p, netip.AddrPort{})
}

// LocalAddr implements net.Conn and net.PacketConn.
func (c *datagramSocket) LocalAddr() net.Addr { return netAddr(c.network, c.LocalAddrPort()) }

// RemoteAddr implements net.Conn; nil when the socket is not connected.
func (c *datagramSocket) RemoteAddr() net.Addr {
	if p := c.RemoteAddrPort(); p.IsValid() {
		return netAddr(c.network, p)
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
	return c.opError("set", c.RemoteAddrPort(), c.readers.setDeadline(t))
}

// SetWriteDeadline implements net.Conn.
func (c *datagramSocket) SetWriteDeadline(t time.Time) error {
	return c.opError("set", c.RemoteAddrPort(), c.writers.setDeadline(t))
}

// WriteTo implements net.PacketConn. addr is a *net.IPAddr.
func (c *RawConn) WriteTo(p []byte, addr net.Addr) (int, error) {
	to, ok := addr.(*net.IPAddr)
	if !ok || to == nil {
		return 0, c.opError("write", netip.AddrPort{}, ErrInvalid)
	}
	ip, _ := netip.AddrFromSlice(to.IP)
	return c.writeTo(p, netip.AddrPortFrom(ip.Unmap().WithZone(to.Zone), 0))
}

// Write implements net.Conn, of a connected socket.
func (c *RawConn) Write(p []byte) (int, error) { return c.writeTo(p, netip.AddrPort{}) }

// writeTo waits while the device is full.
func (c *RawConn) writeTo(p []byte, to netip.AddrPort) (int, error) {
	n, err := await(&c.writers, func() (int, error) { return c.TryWriteTo(p, to) })
	return n, c.opError("write", to, err)
}

// LocalAddr implements net.Conn and net.PacketConn.
func (c *RawConn) LocalAddr() net.Addr { return netAddr(c.network, c.LocalAddrPort()) }
