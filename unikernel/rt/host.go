package rt

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"loam/posix"
)

// linux is the host of a program that runs as a process: posix.Host.
type linux struct{}

// hostCall makes a system call of the host's, whatever its number. Calls about
// the host's descriptors need it not: the door lets them pass.
//
//go:linkname hostCall syscall.linuxSyscall6
func hostCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return syscall.EIO
}

func (linux) Dup(fd int) (int, syscall.Errno) {
	const dupfdCloexec = 1030 // F_DUPFD_CLOEXEC
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), dupfdCloexec, 0)
	return int(n), errno
}

func (linux) Close(fd int) syscall.Errno { return errnoOf(syscall.Close(fd)) }

func (linux) MakeSocketNode(path string) (posix.Node, syscall.Errno) {
	if err := syscall.Mknod(path, syscall.S_IFSOCK|0o777, 0); err != nil {
		return posix.Node{}, errnoOf(err)
	}
	return linux{}.SocketNode(path)
}

func (linux) SocketNode(path string) (posix.Node, syscall.Errno) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return posix.Node{}, errnoOf(err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return posix.Node{}, syscall.ECONNREFUSED
	}
	return posix.Node{Device: st.Dev, Inode: st.Ino}, 0
}

// hostPoller is an epoll set of the host, which lies in the set of the Go
// runtime's poller.
type hostPoller struct {
	fd    int
	file  *os.File
	armed chan func() // sent by Arm, received by run, closed by Close; full: run will tell the one before, which does as well
}

func (linux) NewPoller() (posix.HostPoller, syscall.Errno) {
	fd, _, errno := hostCall(syscall.SYS_EPOLL_CREATE1, syscall.EPOLL_CLOEXEC, 0, 0, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	if err := syscall.SetNonblock(int(fd), true); err != nil { // or os would not poll it
		syscall.Close(int(fd))
		return nil, errnoOf(err)
	}
	h := &hostPoller{fd: int(fd), file: os.NewFile(fd, "epoll"), armed: make(chan func(), 1)}
	conn, err := h.file.SyscallConn()
	if err != nil {
		h.file.Close()
		return nil, syscall.EIO
	}
	go h.run(conn)
	return h, 0
}

// run waits, whenever it is asked to, until the set has something.
func (h *hostPoller) run(conn syscall.RawConn) {
	for f := range h.armed {
		if conn.Read(func(fd uintptr) bool { return readable(int(fd)) }) != nil {
			return // closed
		}
		f()
	}
}

// readable asks poll(2) without waiting.
func readable(fd int) bool {
	const pollIn = 1
	p := pollFD{fd: int32(fd), events: pollIn}
	n, _, _ := hostCall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, 0, 0, 0, 0)
	return int(n) > 0
}

func (h *hostPoller) Control(op, fd int, ev posix.EpollEvent) syscall.Errno {
	e := epollEvent{ev.Events, [2]uint32{uint32(ev.Data), uint32(ev.Data >> 32)}}
	_, _, errno := hostCall(syscall.SYS_EPOLL_CTL, uintptr(h.fd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&e)), 0, 0)
	return errno
}

func (h *hostPoller) Poll(events []posix.EpollEvent) (int, syscall.Errno) {
	var raw [32]epollEvent
	n, _, errno := hostCall(syscall.SYS_EPOLL_WAIT, uintptr(h.fd), uintptr(unsafe.Pointer(&raw)), uintptr(min(len(raw), len(events))), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	for i, e := range raw[:n] {
		events[i] = posix.EpollEvent{Events: e.events, Data: uint64(e.data[0]) | uint64(e.data[1])<<32}
	}
	return int(n), 0
}

func (h *hostPoller) Arm(f func()) {
	select {
	case h.armed <- f:
	default:
	}
}

func (h *hostPoller) Close() {
	close(h.armed)
	h.file.Close()
}

// memoryFile makes a file of the host's with contents of ours, read from the
// beginning.
func memoryFile(name, contents string, changed time.Time) (int, syscall.Errno) {
	const memfdCreate, cloexec = 319, 1 // SYS_memfd_create, MFD_CLOEXEC
	b, err := syscall.BytePtrFromString(name)
	if err != nil {
		return -1, syscall.EINVAL
	}
	n, _, errno := hostCall(memfdCreate, uintptr(unsafe.Pointer(b)), cloexec, 0, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	fd := int(n)
	tv := syscall.NsecToTimeval(changed.UnixNano())
	_, err = syscall.Pwrite(fd, []byte(contents), 0)
	if err == nil {
		err = syscall.Fchmod(fd, 0o444)
	}
	if err == nil {
		err = syscall.Futimes(fd, []syscall.Timeval{tv, tv})
	}
	if err != nil {
		syscall.Close(fd)
		return -1, errnoOf(err)
	}
	return fd, 0
}
