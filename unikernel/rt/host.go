package rt

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep/ring"
	"loam/link"
	"loam/link/tap"
	"loam/link/unixsock"
	"loam/posix"
	"loam/unikernel/guest"
)

// hostLinux is the platform of a program that runs as a Linux process. The table of package seal lists the
// system calls it may make, from its first instruction on. It can open no file: the loam command passes it
// all descriptors and values that it needs (guest.Config).
type hostLinux struct{}

// hostCall makes a system call of the host, bypassing Loam.
//
//go:linkname hostCall syscall.linuxSyscall6
func hostCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err linux.Errno)

// HostFD is the offset that the guest adds to descriptor numbers of the host (unikernel/overlay).
const HostFD = 1 << 24

// hostFile returns a file for a host descriptor that Loam was given. Links are already non-blocking, so
// package os waits for them with the poller.
func hostFile(fd int, name string) *os.File {
	return os.NewFile(uintptr(HostFD+fd), name)
}

// Open implements Platform.
func (hostLinux) Open(l guest.Link) (link.Device, error) {
	var files []*os.File
	for _, fd := range l.FDs {
		files = append(files, hostFile(fd, l.Name))
	}
	switch l.Kind {
	case guest.Socket:
		return unixsock.FromFiles(unixsock.Config{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Header: true}, files...)
	case guest.Tap:
		return tap.FromFiles(files, link.Info{Name: l.Name, MTU: l.MTU, MAC: l.MAC, Offloads: l.Offloads})
	}
	return nil, fmt.Errorf("a link of kind %q is unknown", l.Kind)
}

// Results implements Platform.
func (hostLinux) Results(c guest.Config) io.Writer { return hostFile(c.ResultsFD, "results") }

// Archive implements Platform. The number is a descriptor of the host.
func (hostLinux) Archive(fd int) ([]byte, error) { return mapHost(fd) }

// Shared implements Platform.
func (hostLinux) Shared(s guest.Shared) (io.ReadWriteCloser, error) {
	socket := &hostSocket{fd: uintptr(s.Server)}
	if s.Memory == 0 {
		return socket, nil
	}
	at, _, errno := hostCall(linux.SYS_MMAP, 0, ring.Size, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_SHARED, uintptr(s.Memory), 0)
	if errno != 0 {
		return nil, errno
	}
	return ring.New(bytesAt(ptr(at), ring.Size), socket, false), nil
}

// mapHost maps a host file for reading. The mapping is never removed. fd stays open: a connection that
// is handed over must not get a number below guest.Config.HandedFirst.
func mapHost(fd int) ([]byte, error) {
	var st syscall.Stat_t
	if _, _, errno := hostCall(linux.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); errno != 0 {
		return nil, errno
	}
	if st.Size == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	at, _, errno := hostCall(linux.SYS_MMAP, 0, uintptr(st.Size), linux.PROT_READ, linux.MAP_PRIVATE, uintptr(fd), 0)
	if errno != 0 {
		return nil, errno
	}
	return bytesAt(ptr(at), int(st.Size)), nil
}

// Executable implements Platform.
func (hostLinux) Executable(c guest.Config) (string, []byte) {
	content, err := mapHost(c.ProgramFD)
	if err != nil {
		return c.Program, nil
	}
	return c.Program, content
}

// hostMaps is a descriptor of the host's /proc/self/maps, or -1.
var hostMaps = -1

// openMaps sets hostMaps. Package sandbox intercepts the first openat2, whatever its arguments, and answers
// it with a descriptor of /proc/self/maps.
func openMaps() {
	for {
		fd, _, errno := hostCall(linux.SYS_OPENAT2, 0, 0, 0, 0, 0, 0)
		switch errno {
		case 0:
			hostMaps = int(fd)
			return
		case linux.EINTR:
		default:
			return
		}
	}
}

// Maps implements Platform.
func (hostLinux) Maps() string {
	var text strings.Builder
	b := make([]byte, loanSize)
	for hostMaps >= 0 {
		n, _, errno := hostCall(linux.SYS_PREAD64, uintptr(hostMaps), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(text.Len()), 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		text.Write(b[:n])
	}
	return text.String()
}

// ClockSource implements Platform.
func (hostLinux) ClockSource(c guest.Config) string { return c.ClockSource }

// Meltdown implements Platform. It is the host's business.
func (hostLinux) Meltdown() string { return "" }

// hostStream is a standard stream of the host.
type hostStream struct {
	fd    uintptr
	flags int
	attr  fs.Attr
}

// Stream implements Platform.
func (hostLinux) Stream(fd int, _ guest.Config) posix.Stream {
	flags, _, errno := hostCall(linux.SYS_FCNTL, uintptr(fd), linux.F_GETFL, 0, 0, 0, 0)
	if errno != 0 {
		return nil
	}
	var st syscall.Stat_t
	if _, _, errno := hostCall(linux.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); errno != 0 {
		return nil
	}
	return &hostStream{fd: uintptr(fd), flags: int(flags), attr: fs.Attr{
		Inode: st.Ino, Mode: fs.Mode(st.Mode), Links: uint32(st.Nlink), UID: st.Uid, GID: st.Gid,
		Device: fs.DeviceOf(st.Rdev), Size: st.Size, Blocks: st.Blocks, BlockSize: st.Blksize,
		Access: fs.Time(st.Atim.Nano()), Modify: fs.Time(st.Mtim.Nano()), Status: fs.Time(st.Ctim.Nano()),
	}}
}

// Flags implements posix.Stream.
func (s *hostStream) Flags() int { return s.flags }

// Attr implements posix.Stream.
func (s *hostStream) Attr() fs.Attr { return s.attr }

// Read implements posix.Stream.
func (s *hostStream) Read(b []byte) (int, linux.Errno) {
	return s.retry(linux.SYS_READ, b, posix.PollIn)
}

// Write implements posix.Stream.
func (s *hostStream) Write(b []byte) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n, errno := s.retry(linux.SYS_WRITE, b[done:], posix.PollOut)
		if errno != 0 {
			return done, errno
		}
		done += n
	}
	return done, 0
}

// retry makes a call on a descriptor that may be non-blocking, and waits with poll(2) if it is not ready.
// Loam must not change the mode: the open file description is shared with other processes.
func (s *hostStream) retry(trap uintptr, b []byte, want posix.Events) (int, linux.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	for {
		n, _, errno := hostCall(trap, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case linux.EINTR:
		case linux.EAGAIN:
			p := pollFD(s.fd, want)
			hostCall(linux.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, ^uintptr(0), 0, 0, 0)
		default:
			return 0, errno
		}
	}
}

// Ioctl implements posix.Stream. TIOCSPGRP fails with EPERM: the host's shell controls which process group
// owns the terminal.
func (s *hostStream) Ioctl(request int, arg []byte) linux.Errno {
	if request == linux.TIOCSPGRP {
		return linux.EPERM
	}
	_, _, errno := hostCall(linux.SYS_IOCTL, s.fd, uintptr(request), uintptr(unsafe.Pointer(&arg[0])), 0, 0, 0)
	return errno
}
