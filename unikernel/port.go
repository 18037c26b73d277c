package unikernel

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// port copies the kernel's output from one of its own ports (package boot). The output of ports and of package channel
// must stay in order. Before a frame of the channel is written, take therefore copies everything that has arrived at
// the port, which io.Copy could not do.
type port struct {
	from *os.File // read end of the pipe of the port
	to   io.Writer

	mu   sync.Mutex
	room []byte // read buffer; guarded by mu
}

// newPort returns a port that copies from a non-blocking pipe.
func newPort(from *os.File, to io.Writer) *port {
	return &port{from: from, to: to, room: make([]byte, 16<<10)}
}

// copy copies until the end of the pipe.
func (p *port) copy() {
	if conn, err := p.from.SyscallConn(); err == nil {
		conn.Read(p.takeFrom)
	}
}

// take copies the bytes that are in the pipe now, and does not wait for more.
func (p *port) take() {
	if conn, err := p.from.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { p.takeFrom(fd) })
	}
}

// takeFrom copies what is in the pipe, and reports whether the pipe has ended.
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
