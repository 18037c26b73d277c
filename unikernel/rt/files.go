package rt

import (
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"loam/posix"
)

// Files that Loam serves: those that say what the network says, and a sink. The
// first are files in the host's memory, so everything that can be done to a file
// can be done to them: one each for what never changes, made when first asked
// for, and for what changes one at each opening.

// servedPaths are the paths; served1 returns an index.
const (
	pathResolv = "/etc/resolv.conf"
	pathHosts  = "/etc/hosts"
	pathIGMP   = "/proc/net/igmp"
	pathIGMP6  = "/proc/net/igmp6"
	pathSink   = posix.SinkPath
)

type servedFile int

const (
	notServed servedFile = iota
	resolvConf
	hosts
	procIGMP
	procIGMP6 // empty: no IPv6
	sinkFile
)

// contents are set when the network is, before the program runs.
var contents = map[servedFile]string{}

// memory has the descriptors of the files in the host's memory.
var memory struct {
	mu  sync.Mutex
	fds map[servedFile]int
}

// memoryOf returns the descriptor of a file that never changes.
func memoryOf(f servedFile) (int, syscall.Errno) {
	memory.mu.Lock()
	defer memory.mu.Unlock()
	if fd, there := memory.fds[f]; there {
		return fd, 0
	}
	fd, errno := memoryFile("loam", contents[f], started)
	if errno == 0 {
		if memory.fds == nil {
			memory.fds = make(map[servedFile]int)
		}
		memory.fds[f] = fd
	}
	return fd, errno
}

// started is when the files were last changed, for people who ask.
var started = time.Now()

// served1 finds out which file a path is. It is nosplit for call.
//
//go:nosplit
func served1(path uintptr) servedFile {
	if path < 4096 {
		return notServed
	}
	switch {
	case pathIs(path, pathResolv):
		return resolvConf
	case pathIs(path, pathHosts):
		return hosts
	case pathIs(path, pathIGMP):
		return procIGMP
	case pathIs(path, pathIGMP6):
		return procIGMP6
	case pathIs(path, pathSink):
		return sinkFile
	}
	return notServed
}

// pathIs compares a string of the program's, which ends at a NUL. It reads no
// further than the strings agree. It is nosplit for call.
//
//go:nosplit
func pathIs(path uintptr, want string) bool {
	for i := 0; i < len(want); i++ {
		if *(*byte)(ptr(path + uintptr(i))) != want[i] {
			return false
		}
	}
	return *(*byte)(ptr(path + uintptr(len(want)))) == 0
}

// openServed is open and openat. It is nosplit for call.
//
//go:nosplit
func openServed(f servedFile, flags uintptr) (r1, errno uintptr, served bool) {
	if f == notServed || f != sinkFile && flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return 0, 0, false
	}
	r1, errno = openFile(f, int(flags))
	return r1, errno, true
}

//go:noinline
func openFile(f servedFile, flags int) (uintptr, uintptr) {
	if f == sinkFile {
		return result(process.OpenSink(flags & (syscall.O_CLOEXEC | syscall.O_NONBLOCK)))
	}
	fd, errno := 0, syscall.Errno(0)
	if f == procIGMP {
		if fd, errno = memoryFile("loam", process.ProcNetIGMP(), time.Now()); errno == 0 {
			defer syscall.Close(fd)
		}
	} else {
		fd, errno = memoryOf(f)
	}
	if errno != 0 {
		return fail(errno)
	}
	// Opened again, it has a position of its own.
	again, err := syscall.Open("/proc/self/fd/"+strconv.Itoa(fd), flags&^syscall.O_NOFOLLOW, 0)
	return result(again, errnoOf(err))
}

// statServed is stat, lstat and newfstatat. It is nosplit for call.
//
//go:nosplit
func statServed(f servedFile, p uintptr) (r1, errno uintptr, served bool) {
	if f == notServed || f == sinkFile {
		return 0, 0, false
	}
	r1, errno = statFile(f, ptr(p))
	return r1, errno, true
}

//go:noinline
func statFile(f servedFile, p unsafe.Pointer) (uintptr, uintptr) {
	fd, errno := memoryOf(f)
	if errno != 0 {
		return fail(errno)
	}
	if p == nil {
		return fail(syscall.EFAULT)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return fail(errnoOf(err))
	}
	*(*syscall.Stat_t)(p) = st
	return 0, 0
}

// accessServed is access and faccessat: everybody may read. It is nosplit for
// call.
//
//go:nosplit
func accessServed(f servedFile, mode uintptr) (r1, errno uintptr, served bool) {
	const read = 4
	switch {
	case f == notServed || f == sinkFile:
		return 0, 0, false
	case mode&^read != 0:
		return failure, uintptr(syscall.EACCES), true
	}
	return 0, 0, true
}
