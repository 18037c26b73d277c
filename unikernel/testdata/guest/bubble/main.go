// Command bubble uses the network inside a bubble of testing/synctest. The parts of Loam's kernel that serve a program
// in a bubble stay outside of it: they use the machine's clock, the bubble does not wait for their goroutines, and
// goroutines outside may use their objects, such as channels.
package main

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	check.Nil(err, "listen outside")
	go answer(outside)
	use := func(t *testing.T) { synctest.Test(t, func(*testing.T) { inside(outside) }) }
	everything := func(string, string) (bool, error) { return true, nil }
	testing.Main(everything, []testing.InternalTest{{Name: "TestBubble", F: use}, {Name: "TestEnd", F: end}}, nil, nil)
}

// answer accepts connections and echoes. It runs outside of the bubble.
func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}

func inside(outside net.Listener) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Nil(err, "listen inside")
	go answer(l)
	echo(outside)
	echo(l)
	datagrams()
	timeouts()
	check.Nil(l.Close(), "close a listener of the bubble")
}

// echo sends to a listener, which may be in another bubble, and checks the reply.
func echo(l net.Listener) {
	c, err := net.Dial("tcp", l.Addr().String())
	check.Nil(err, "dial")
	_, err = io.WriteString(c, "there and back")
	check.Nil(err, "write")
	check.Nil(c.(*net.TCPConn).CloseWrite(), "end the stream")
	b, err := io.ReadAll(c)
	check.That(string(b) == "there and back" && err == nil, "echoed %q, %v", b, err)
	check.Nil(c.Close(), "close")
}

func datagrams() {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	check.Nil(err, "listen for datagrams")
	defer c.Close()
	go c.WriteTo([]byte("datagram"), c.LocalAddr())
	b := make([]byte, 16)
	n, _, err := c.ReadFrom(b)
	check.That(string(b[:n]) == "datagram" && err == nil, "received %q, %v", b[:n], err)
	check.Nil(c.SetReadDeadline(time.Now().Add(10*time.Millisecond)), "deadline")
	_, _, err = c.ReadFrom(b)
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "at the deadline: %v", err)
}

// timeouts blocks in system calls with timeouts, which the machine's clock ends.
func timeouts() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check.Nil(err, "socket")
	defer syscall.Close(fd)
	check.Nil(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 1000}), "SO_RCVTIMEO")
	before := time.Now()
	_, _, err = syscall.Recvfrom(fd, make([]byte, 1), 0)
	check.Equal(err, error(syscall.EAGAIN), "after a millisecond without a datagram")
	check.Equal(time.Since(before), 0, "the bubble's time that has passed")
	poll := struct {
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: 1}
	n, _, errno := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&poll)), 1, 1)
	check.That(n == 0 && errno == 0, "poll returns %d, %v", n, errno)
}

// end ends the program from inside a bubble.
func end(t *testing.T) {
	synctest.Test(t, func(*testing.T) { check.Done() })
}
