package rt

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"loam/fs"
	"loam/link"
	"loam/link/tap"
	"loam/link/unixsock"
	"loam/posix"
	"loam/unikernel/guest"
)

// linux is the platform of a program that runs as a process. What it asks of Linux once
// the program runs is in the table of package seal, and nothing else reaches Linux.
// Before that there are besides: mmap and fstat of archives and of the program's file,
// openat, readlink, getcwd, fcntl, uname, sysinfo, and what opens the links.
type linux struct{}

// hostCall makes a system call of the host's, past the door.
//
//go:linkname hostCall syscall.linuxSyscall6
func hostCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

// HostFD is what the door adds to descriptors of the host (unikernel/overlay).
const HostFD = 1 << 24

// hostFile is a file of the host's that Loam was given.
func hostFile(fd int, name string) *os.File {
	hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, syscall.FD_CLOEXEC, 0, 0, 0) // it is ours from here on
	return os.NewFile(uintptr(HostFD+fd), name)
}

// Open implements Platform.
func (linux) Open(l guest.Link) (link.Device, error) {
	var files []*os.File
	for _, fd := range l.FDs {
		if err := syscall.SetNonblock(HostFD+fd, true); err != nil { // so that package os waits for it by the poller
			return nil, err
		}
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

// Devices implements Platform: a process has none of its own.
func (linux) Devices(*fs.View, guest.Config) error { return nil }

// Results implements Platform.
func (linux) Results(c guest.Config) io.Writer { return hostFile(c.ResultsFD, "results") }

// Archive implements Platform: the number is a descriptor.
func (linux) Archive(fd int) ([]byte, error) { return mapHost(fd) }

// mapHost maps a file of the host for reading, for ever.
func mapHost(fd int) ([]byte, error) {
	var st syscall.Stat_t
	if _, _, errno := hostCall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); errno != 0 {
		return nil, errno
	}
	if st.Size == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	at, _, errno := hostCall(syscall.SYS_MMAP, 0, uintptr(st.Size), syscall.PROT_READ, syscall.MAP_PRIVATE, uintptr(fd), 0)
	if errno != 0 {
		return nil, errno
	}
	hostCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	return bytesAt(ptr(at), int(st.Size)), nil
}

// Executable implements Platform.
func (linux) Executable() (string, []byte) {
	name, ok := hostLink("/proc/self/exe")
	if !ok {
		return os.Args[0], nil
	}
	fd, errno := hostOpen("/proc/self/exe")
	if errno != 0 {
		return name, nil
	}
	content, err := mapHost(fd)
	if err != nil {
		return name, nil
	}
	return name, content
}

// hostMaps is the host's /proc/self/maps, or -1. It is opened before the seal, after
// which nothing can be.
var hostMaps = -1

func openMaps() {
	if fd, errno := hostOpen("/proc/self/maps"); errno == 0 {
		hostMaps = fd
	}
}

// Maps implements Platform.
func (linux) Maps() string {
	var text strings.Builder
	b := make([]byte, loanSize)
	for hostMaps >= 0 {
		n, _, errno := hostCall(syscall.SYS_PREAD64, uintptr(hostMaps), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(text.Len()), 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		text.Write(b[:n])
	}
	return text.String()
}

// ClockSource implements Platform.
func (linux) ClockSource() string {
	fd, errno := hostOpen("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if errno != 0 {
		return ""
	}
	defer hostCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	var name [64]byte
	n, _, errno := hostCall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), 0, 0, 0)
	if errno != 0 {
		return ""
	}
	return strings.TrimSpace(string(name[:n]))
}

// hostOpen opens a file of the host for reading.
func hostOpen(name string) (int, syscall.Errno) {
	const here = ^uintptr(99) // AT_FDCWD
	text := append([]byte(name), 0)
	fd, _, errno := hostCall(syscall.SYS_OPENAT, here, uintptr(unsafe.Pointer(&text[0])), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	return int(fd), errno
}

// hostLink reads a symbolic link of the host.
func hostLink(name string) (string, bool) {
	from, to := append([]byte(name), 0), make([]byte, fs.MaxPath)
	n, _, errno := hostCall(syscall.SYS_READLINK, uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)), 0, 0, 0)
	if errno != 0 {
		return "", false
	}
	return string(to[:n]), true
}

// hostStream is a standard stream of the host.
type hostStream struct {
	fd    uintptr
	flags int
	attr  fs.Attr
}

// Stream implements Platform.
func (linux) Stream(fd int, _ guest.Config) posix.Stream {
	flags, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0, 0, 0, 0)
	if errno != 0 {
		return nil
	}
	var st syscall.Stat_t
	if _, _, errno := hostCall(syscall.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); errno != 0 {
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
func (s *hostStream) Read(b []byte) (int, syscall.Errno) {
	return s.retry(syscall.SYS_READ, b, posix.PollIn)
}

// Write implements posix.Stream.
func (s *hostStream) Write(b []byte) (int, syscall.Errno) {
	done := 0
	for done < len(b) {
		n, errno := s.retry(syscall.SYS_WRITE, b[done:], posix.PollOut)
		if errno != 0 {
			return done, errno
		}
		done += n
	}
	return done, 0
}

// retry makes a call of a descriptor that may be in non-blocking mode: the mode is
// the host's, and others share it.
func (s *hostStream) retry(trap uintptr, b []byte, want posix.Events) (int, syscall.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	for {
		n, _, errno := hostCall(trap, s.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		case syscall.EAGAIN:
			p := pollFD{fd: int32(s.fd), events: int16(want)}
			hostCall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, ^uintptr(0), 0, 0, 0)
		default:
			return 0, errno
		}
	}
}

// Ioctl implements posix.Stream. Whose the terminal is, is for the host's shell to say.
func (s *hostStream) Ioctl(request int, arg []byte) syscall.Errno {
	if request == syscall.TIOCSPGRP {
		return syscall.EPERM
	}
	_, _, errno := hostCall(syscall.SYS_IOCTL, s.fd, uintptr(request), uintptr(unsafe.Pointer(&arg[0])), 0, 0, 0)
	return errno
}
