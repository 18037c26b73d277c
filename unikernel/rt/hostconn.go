package rt

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"loam/abi/linux"
	"loam/posix"
	"loam/usernet/hand"
)

// hostConn is a host connection that the gateway handed over. It implements posix.HostTCP with system
// calls.
type hostConn struct {
	link    *handedLink
	client  uint16
	fd      int           // descriptor of the host for the connection; -1: none was received
	in, out atomic.Uint64 // numbers of bytes received and sent
	reset   atomic.Bool   // a call has failed with ECONNRESET or EPIPE

	mu      sync.Mutex // guards the fields below
	watched *os.File   // file of a duplicate of fd, on which Watch waits
	closed  bool
}

// hostBytes makes a host system call on a byte slice. b may lie on this goroutine's stack, which does not
// move during a system call.
func hostBytes(trap, fd uintptr, b []byte) (int, linux.Errno) {
	n, _, errno := hostCall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// noted adds the bytes of a call to a counter (the parameter count), records whether the
// call has shown a reset of the connection, and returns the call's results unchanged.
func (c *hostConn) noted(n int, errno linux.Errno, count *atomic.Uint64) (int, linux.Errno) {
	if errno == 0 {
		count.Add(uint64(n))
	} else if errno == linux.ECONNRESET || errno == linux.EPIPE {
		c.reset.Store(true)
	}
	return n, errno
}

// Read implements posix.HostTCP.
func (c *hostConn) Read(b []byte) (int, linux.Errno) {
	n, errno := hostBytes(linux.SYS_READ, uintptr(c.fd), b)
	return c.noted(n, errno, &c.in)
}

// Write implements posix.HostTCP.
func (c *hostConn) Write(b []byte) (int, linux.Errno) {
	n, errno := hostBytes(linux.SYS_WRITE, uintptr(c.fd), b)
	return c.noted(n, errno, &c.out)
}

// Recv implements posix.HostTCP.
func (c *hostConn) Recv(b []byte, flags int) (int, linux.Errno) {
	r, _, errno := hostCall(linux.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	n := int(r)
	if errno != 0 {
		n = 0
	}
	if flags&linux.MSG_PEEK != 0 {
		return n, errno
	}
	return c.noted(n, errno, &c.in)
}

// Send implements posix.HostTCP.
func (c *hostConn) Send(b []byte, flags int) (int, linux.Errno) {
	n, _, errno := hostCall(linux.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(flags), 0, 0)
	if errno != 0 {
		n = 0
	}
	return c.noted(int(n), errno, &c.out)
}

// pollAll is the set of events that Events asks poll(2) for.
const pollAll = posix.PollIn | posix.PollPri | posix.PollOut | posix.PollRdHup

// pollFD returns an encoded struct pollfd.
func pollFD(fd uintptr, events posix.Events) (p [linux.SizeofPollFD]byte) {
	linux.PollFD{FD: int32(fd), Events: uint16(events)}.Put(p[:])
	return p
}

// Events implements posix.HostTCP.
func (c *hostConn) Events() posix.Events {
	p := pollFD(uintptr(c.fd), pollAll)
	hostCall(linux.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, 0, 0, 0, 0)
	return posix.Events(linux.ParsePollFD(p[:]).Revents)
}

// Shutdown implements posix.HostTCP.
func (c *hostConn) Shutdown(how int) linux.Errno {
	_, _, errno := hostCall(linux.SYS_SHUTDOWN, uintptr(c.fd), uintptr(how), 0, 0, 0, 0)
	return errno
}

// Option implements posix.HostTCP.
func (c *hostConn) Option(level, name int, value []byte) (int, linux.Errno) {
	n := uint32(len(value))
	_, _, errno := hostCall(linux.SYS_GETSOCKOPT, uintptr(c.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(unsafe.Pointer(&n)), 0)
	return int(n), errno
}

// SetOption implements posix.HostTCP.
func (c *hostConn) SetOption(level, name int, value []byte) linux.Errno {
	_, _, errno := hostCall(linux.SYS_SETSOCKOPT, uintptr(c.fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(unsafe.SliceData(value))), uintptr(len(value)), 0)
	return errno
}

// Queued implements posix.HostTCP.
func (c *hostConn) Queued(request int) int {
	var n int32
	hostCall(linux.SYS_IOCTL, uintptr(c.fd), uintptr(request), uintptr(unsafe.Pointer(&n)), 0, 0, 0)
	return int(n)
}

// Descriptor implements posix.HostTCP.
func (c *hostConn) Descriptor() int { return c.fd }

// Watch implements posix.HostTCP. It waits on a duplicate of the descriptor: an epoll set holds each
// descriptor once, and the program may already have added this one.
func (c *hostConn) Watch(look func(of posix.Events) (over bool)) linux.Errno {
	n, _, errno := hostCall(linux.SYS_FCNTL, uintptr(c.fd), linux.F_DUPFD_CLOEXEC, uintptr(hostHanded), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	f := os.NewFile(HostFD+n, "watched")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return linux.EMFILE
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
		go c.watched.Close() // Close waits until callbacks have returned, and the caller may be one of them
	}
	c.mu.Unlock()
	if abort && c.fd >= 0 {
		l := syscall.Linger{Onoff: 1}
		c.SetOption(linux.SOL_SOCKET, linux.SO_LINGER, bytesAt(unsafe.Pointer(&l), int(unsafe.Sizeof(l))))
	}
	if c.fd >= 0 {
		hostCall(linux.SYS_CLOSE, uintptr(c.fd), 0, 0, 0, 0, 0)
	}
	c.link.report(hand.End{Client: c.client, Refused: refused, Reset: abort || c.reset.Load(), In: c.in.Load(), Out: c.out.Load()})
}
