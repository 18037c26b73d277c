package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// deferred listens on the third port with TCP_DEFER_ACCEPT: a connection is accepted only after its client has sent
// data, which is echoed.
func deferred(c *net.TCPConn) error {
	defer c.Close()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, 100)
		})
		return err
	}}
	l, err := config.Listen(context.Background(), "tcp4", ":"+os.Args[3])
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := c.Write([]byte("listens\n")); err != nil {
		return err
	}
	if _, err := readLine(c); err != nil { // a client has connected, without sending data
		return err
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("accept of who says nothing: %w", err)
	}
	if _, err := c.Write([]byte("nobody\n")); err != nil {
		return err
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	came, err := l.Accept()
	if err != nil {
		return err
	}
	return echo(came.(*net.TCPConn))
}
