package rt

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"loam/posix"
	"loam/usernet/hand"
)

// hostConn is a connection of the host's that was handed over: posix.HostTCP by system
// calls.
type hostConn struct {
	link    *handedLink
	client  uint16
	fd      int           // of the host; -1: none came
	in, out atomic.Uint64 // bytes
	reset   atomic.Bool   // an error has said so

	mu      sync.Mutex // guards what follows
	watched *os.File   // a second descriptor, which Watch waits for
	closed  bool
}

// hostBytes makes a call of the host's about bytes. They may lie on this goroutine's
// stack, which stays where it is during a system call.
func hostBytes(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := hostCall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// noted counts what a call has received or sent, and passes its results on.
func (c *hostConn) noted(n int, errno syscall.Errno, count *atomic.Uint64) (int, syscall.Errno) {
	if errno == 0 {
		count.Add(uint64(n))
	} else if errno == syscall.ECONNRESET || errno == syscall.EPIPE {
		c.reset.Store(true)
	}
	return n, errno
}

// Read implements posix.HostTCP.
func (c *hostConn) Read(b []byte) (int, syscall.Errno) {
	n, errno := hostBytes(syscall.SYS_READ, uintptr(c.fd), b)
	return c.noted(n, errno, &c.in)
}

// Write implements posix.HostTCP.
func (c *hostConn) Write(b []byte) (int, syscall.Errno) {
	n, errno := hostBytes(syscall.SYS_WRITE, uintptr(c.fd), b)
	return c.noted(n, errno, &c.out)
}

// Recv implements posix.HostTCP.
func (c *hostConn) Recv(b []byte, flags int) (int, syscall.Errno) {
	r, _, errno := hostCall(syscall.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	n := int(r)
	if errno != 0 {
		n = 0
	}
	if flags&syscall.MSG_PEEK != 0 {
		return n, errno
	}
	return c.noted(n, errno, &c.in)
}

// Send implements posix.HostTCP.
func (c *hostConn) Send(b []byte, flags int) (int, syscall.Errno) {
	n, _, errno := hostCall(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	if errno != 0 {
		n = 0
	}
	return c.noted(int(n), errno, &c.out)
}

// pollAll is what poll(2) is asked for.
const pollAll = posix.PollIn | posix.PollPri | posix.PollOut | posix.PollRdHup

// Events implements posix.HostTCP.
func (c *hostConn) Events() posix.Events {
	p := pollFD{fd: int32(c.fd), events: int16(pollAll)}
	hostCall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, 0, 0, 0, 0)
	return posix.Events(uint16(p.revents))
}

// Shutdown implements posix.HostTCP.
func (c *hostConn) Shutdown(how int) syscall.Errno {
	_, _, errno := hostCall(syscall.SYS_SHUTDOWN, uintptr(c.fd), uintptr(how), 0, 0, 0, 0)
	return errno
}

// Option implements posix.HostTCP.
func (c *hostConn) Option(level, name int, value []byte) (int, syscall.Errno) {
	n := uint32(len(value))
	_, _, errno := hostCall(syscall.SYS_GETSOCKOPT, uintptr(c.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(unsafe.Pointer(&n)), 0)
	return int(n), errno
}

// SetOption implements posix.HostTCP.
func (c *hostConn) SetOption(level, name int, value []byte) syscall.Errno {
	_, _, errno := hostCall(syscall.SYS_SETSOCKOPT, uintptr(c.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(len(value)), 0)
	return errno
}

// Queued implements posix.HostTCP.
func (c *hostConn) Queued(request int) int {
	var n int32
	hostCall(syscall.SYS_IOCTL, uintptr(c.fd), uintptr(request), uintptr(unsafe.Pointer(&n)), 0, 0, 0)
	return int(n)
}

// Descriptor implements posix.HostTCP.
func (c *hostConn) Descriptor() int { return c.fd }

// Watch implements posix.HostTCP. It waits for a descriptor of its own: in the epoll set
// of the runtime each stands once, and the program may have put this one there.
func (c *hostConn) Watch(look func(of posix.Events) (over bool)) syscall.Errno {
	n, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(c.fd), syscall.F_DUPFD_CLOEXEC, uintptr(hostHanded), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	f := os.NewFile(HostFD+n, "watched")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return syscall.EMFILE
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		f.Close()
		return 0
	}
	c.watched = f
	go raw.Read(func(uintptr) (over bool) { return look(readEvents | posix.PollPri) })
	go raw.Write(func(uintptr) (over bool) { return look(writeEvents) })
	return 0
}

// Close implements posix.HostTCP.
func (c *hostConn) Close(abort, refused bool) {
	c.mu.Lock()
	c.closed = true
	if c.watched != nil {
		go c.watched.Close() // waits for who waits for it, and that may be the caller
	}
	c.mu.Unlock()
	if abort && c.fd >= 0 {
		l := syscall.Linger{Onoff: 1}
		c.SetOption(syscall.SOL_SOCKET, syscall.SO_LINGER, bytesAt(unsafe.Pointer(&l), int(unsafe.Sizeof(l))))
	}
	if c.fd >= 0 {
		hostCall(syscall.SYS_CLOSE, uintptr(c.fd), 0, 0, 0, 0, 0)
	}
	c.link.tell(hand.End{Client: c.client, Refused: refused, Reset: abort || c.reset.Load(), In: c.in.Load(), Out: c.out.Load()})
}
