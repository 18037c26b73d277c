// Command goroutines looks for goroutines of Loam's kernel in the program's list of goroutines. They must not appear in
// it, because the program would wait for them to end.
package main

import (
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	alone("at first")
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	check.Nil(err, "listen")
	alone("with a socket")
	os.Stdin.Read(make([]byte, 1))
	alone("after a read of standard input")
	pollBoth(c.(*net.UDPConn))
	check.Nil(c.Close(), "close")
	alone("after all")
	check.Done()
}

func alone(when string) {
	check.Equal(runtime.NumGoroutine(), 1, "NumGoroutine "+when)
	check.Equal(pprof.Lookup("goroutine").Count(), 1, "goroutines in a profile "+when)
	b := make([]byte, 1<<20)
	all := string(b[:runtime.Stack(b, true)])
	check.Equal(strings.Count(all, "\n\ngoroutine "), 0, "other goroutines in the stacks "+when)
	check.Equal(strings.Count(all, "/stack."), 0, "mentions of the stack "+when)
}

// pollBoth polls a socket of Loam and a descriptor of the host at once, for which Loam needs a goroutine.
func pollBoth(c *net.UDPConn) {
	r, w, err := os.Pipe()
	check.Nil(err, "pipe")
	defer r.Close()
	defer w.Close()
	raw, err := c.SyscallConn()
	check.Nil(err, "SyscallConn")
	raw.Control(func(fd uintptr) {
		type pollFD struct {
			fd              int32
			events, revents int16
		}
		fds := [2]pollFD{{fd: int32(fd), events: 1}, {fd: int32(r.Fd()), events: 1}}
		n, _, errno := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&fds)), 2, 10)
		check.That(n == 0 && errno == 0, "poll returns %d, %v", n, errno)
		alone("after poll")
	})
}
