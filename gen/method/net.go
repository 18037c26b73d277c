//go:build linux

package method

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// netSender is the method net: a connection of package net. While the socket is full, it waits in the runtime's poller.
//
// It does not call Conn.Write. Each call of Write notifies the scheduler before and after its system call. If
// processors of the runtime are idle, they wake up and look for work each time; this used 0.85 of a second processor
// (measured with two processors, Go 1.26). RawConn.Write allows a batch of system calls on the same connection without
// these notifications.
type netSender struct {
	counters
	conn  *net.UDPConn
	raw   syscall.RawConn
	slot  []byte
	write func(fd uintptr) bool // the method writeOn as a func value; stored, because creating it allocates

	// State of the batch in progress.
	want, length       int // number of frames left to send; length of the first of them, or 0 if it is not written yet
	fill               func(slot []byte) int
	sent, bytes, kicks int
	patience           patience
	err                error
}

// openNet opens the method net: a connected UDP socket by net.Dialer, bound to Config.Interface if it is not empty.
func openNet(c Config) (Sender, error) {
	c = c.WithDefaults()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) {
			wishSendBuffer(int(fd))
			if c.Interface != "" {
				err = unix.BindToDevice(int(fd), c.Interface)
			}
		})
		return err
	}}
	if c.Source.Addr().IsValid() {
		d.LocalAddr = net.UDPAddrFromAddrPort(c.Source)
	}
	conn, err := d.Dial("udp", c.Destination.String())
	if err != nil {
		return nil, explain(c, "net.Dial", err)
	}
	s := &netSender{conn: conn.(*net.UDPConn), slot: make([]byte, c.Size)}
	if s.raw, err = s.conn.SyscallConn(); err != nil {
		conn.Close()
		return nil, err
	}
	s.write = s.writeOn
	return s, nil
}

// Layer implements Sender.
func (s *netSender) Layer() Layer { return Payload }

// Send implements Sender.
func (s *netSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	s.want, s.fill = n, fill
	s.sent, s.bytes, s.kicks, s.length, s.err = 0, 0, 0, 0, nil
	s.patience = patience{}
	if err = s.raw.Write(s.write); err == nil {
		err = s.err
	}
	s.took(s.sent, s.bytes, s.kicks)
	return s.sent, err
}

// writeOn sends the rest of a batch. It returns false if the socket is full; the runtime calls it again when the socket
// has room.
func (s *netSender) writeOn(fd uintptr) (done bool) {
	for s.want > 0 {
		if s.length == 0 {
			if s.length = s.fill(s.slot); s.length == 0 {
				return true
			}
		}
		s.kicks++
		switch errno := send(int(fd), s.slot[:s.length]); errno {
		case 0:
			s.sent++
			s.bytes += s.length
			s.patience = patience{}
		case unix.EAGAIN:
			s.busy.Add(1)
			return false
		default:
			if err := s.patience.wait(int(fd), &s.counters, errno); err == nil {
				continue
			} else if err != errRefused {
				s.err = err
				return true
			}
		}
		s.want--
		s.length = 0
	}
	return true
}

// Flush implements Sender.
func (s *netSender) Flush(timeout time.Duration) (err error) {
	if e := s.raw.Control(func(fd uintptr) { err = flush(int(fd), &s.counters, timeout) }); e != nil {
		return e
	}
	return err
}

// Close implements Sender.
func (s *netSender) Close() error { return s.conn.Close() }
