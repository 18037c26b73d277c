//go:build linux

package method

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// netSender is the method net: what a Go program does that knows of nothing
// else. Its calls wait for room by themselves, in the runtime's poller.
type netSender struct {
	counters
	conn *net.UDPConn
	raw  syscall.RawConn
	slot []byte
}

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
	return s, nil
}

// Layer implements Sender.
func (s *netSender) Layer() Layer { return Payload }

// Send implements Sender.
func (s *netSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	bytes, kicks := 0, 0
	for range n {
		length := fill(s.slot)
		if length == 0 {
			break
		}
		kicks++
		if _, err = s.conn.Write(s.slot[:length]); err != nil {
			if err = s.insist(err, length); err == errRefused {
				err = nil
				continue
			}
			if err != nil {
				break
			}
		}
		sent++
		bytes += length
	}
	s.took(sent, bytes, kicks)
	return sent, err
}

// insist tries again until the datagram is taken.
func (s *netSender) insist(err error, length int) error {
	var p patience
	for err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			return fmt.Errorf("net: %w", err)
		}
		if err := p.wait(-1, &s.counters, errno); err != nil {
			return err
		}
		_, err = s.conn.Write(s.slot[:length])
	}
	return nil
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
