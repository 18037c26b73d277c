package unikernel

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// port copies what the kernel writes to a port of its own (package boot). It is not
// io.Copy because what comes by a port and what comes by package channel have one
// order: before a frame of the channel is written, take copies what the port had
// before that.
type port struct {
	from *os.File // a pipe
	to   io.Writer

	mu   sync.Mutex
	room []byte // under mu
}

func newPort(from *os.File, to io.Writer) *port {
	return &port{from: from, to: to, room: make([]byte, 16<<10)}
}

// copy copies until the end.
func (p *port) copy() {
	if conn, err := p.from.SyscallConn(); err == nil {
		conn.Read(p.takeFrom)
	}
}

// take copies what is there now.
func (p *port) take() {
	if conn, err := p.from.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { p.takeFrom(fd) })
	}
}

// takeFrom copies what is there and reports whether that was the end.
func (p *port) takeFrom(fd uintptr) (end bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := syscall.Read(int(fd), p.room)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return false
		case err != nil || n == 0:
			return true
		default:
			p.to.Write(p.room[:n])
		}
	}
}
