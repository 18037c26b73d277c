package rt

import (
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
)

// hostKernel implements posix.Kernel. Its kernel is Linux in a process, and package kernel in a virtual
// machine.
type hostKernel struct{}

// Call implements posix.Kernel.
func (hostKernel) Call(number int, a1, a2, a3, a4, a5, a6 uint64) (uint64, linux.Errno) {
	r, _, errno := hostCall(uintptr(number), uintptr(a1), uintptr(a2), uintptr(a3), uintptr(a4), uintptr(a5), uintptr(a6))
	return uint64(r), errno
}

// Names implements posix.Kernel.
func (hostKernel) Names() linux.Utsname { return hostNames }

// hostNames are the names that uname(2) returned. They are set before Loam serves calls and never change.
var hostNames linux.Utsname

// Limit implements posix.Kernel. Resource limits are the host's, with one exception. A sealed process may
// not dump core (package seal), so RLIMIT_CORE only stores what the program sets and returns it.
func (hostKernel) Limit(pid, resource int, set, get *linux.Rlimit) linux.Errno {
	if resource == linux.RLIMIT_CORE && (pid == 0 || pid == process.PID()) && !kernelIsOurs {
		return coreLimit.prlimit(set, get)
	}
	var to, was [linux.SizeofRlimit]byte
	var args [2]uintptr
	if set != nil {
		set.Put(to[:])
		args[0] = uintptr(unsafe.Pointer(&to))
	}
	if get != nil {
		args[1] = uintptr(unsafe.Pointer(&was))
	}
	_, _, errno := hostCall(linux.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), args[0], args[1], 0, 0)
	if get != nil {
		*get = linux.ParseRlimit(was[:])
	}
	return errno
}

// coreLimit is the program's RLIMIT_CORE. The bits are inverted, so that the zero value means no limit.
var coreLimit coreDumps

// coreDumps holds the soft and hard limit on core dumps, in bytes, with inverted bits: see coreLimit.
type coreDumps struct {
	mu         sync.Mutex // guards the two limits
	soft, hard uint64
}

// prlimit implements prlimit(2) of RLIMIT_CORE for an unprivileged user: the hard limit can only be
// lowered.
func (c *coreDumps) prlimit(set, get *linux.Rlimit) linux.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := linux.Rlimit{Cur: ^c.soft, Max: ^c.hard}
	if set != nil {
		switch {
		case set.Cur > set.Max:
			return linux.EINVAL
		case set.Max > was.Max:
			return linux.EPERM
		}
		c.soft, c.hard = ^set.Cur, ^set.Max
	}
	if get != nil {
		*get = was
	}
	return 0
}

// threadNameSize is the size of a thread's name in bytes, including the NUL (prctl(2)).
const threadNameSize = 16

// NameThread implements posix.Kernel.
func (hostKernel) NameThread(name string) linux.Errno {
	var b [threadNameSize]byte
	copy(b[:threadNameSize-1], name)
	_, _, errno := hostCall(linux.SYS_PRCTL, linux.PR_SET_NAME, uintptr(unsafe.Pointer(&b)), 0, 0, 0, 0)
	return errno
}

// ThreadName implements posix.Kernel.
func (hostKernel) ThreadName() (string, linux.Errno) {
	var b [threadNameSize]byte
	_, _, errno := hostCall(linux.SYS_PRCTL, linux.PR_GET_NAME, uintptr(unsafe.Pointer(&b)), 0, 0, 0, 0)
	return stringOf(b[:]), errno
}

// NameMemory implements posix.Kernel.
func (hostKernel) NameMemory(kind int, addr, length uint64, name string) linux.Errno {
	text := append([]byte(name), 0)
	at := uintptr(unsafe.Pointer(&text[0]))
	if name == "" {
		at = 0
	}
	_, _, errno := hostCall(linux.SYS_PRCTL, linux.PR_SET_VMA, uintptr(kind), uintptr(addr), uintptr(length), at, 0)
	runtime.KeepAlive(text)
	return errno
}

// askNames sets hostNames.
func askNames() error {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return err
	}
	hostNames = linux.Utsname{
		Sysname: stringOf(u.Sysname[:]), Nodename: stringOf(u.Nodename[:]), Release: stringOf(u.Release[:]),
		Version: stringOf(u.Version[:]), Machine: stringOf(u.Machine[:]), Domainname: stringOf(u.Domainname[:]),
	}
	return nil
}

// stringOf returns a NUL-terminated field as a string.
func stringOf[T int8 | byte](field []T) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// readClock returns the time of a clock. The caller has checked that the clock exists.
func readClock(id int) time.Duration {
	var t syscall.Timespec
	hostCall(linux.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0, 0, 0, 0)
	return time.Duration(t.Nano())
}

// sendTimer is the posix.Sender of the program. The signal has no value.
func sendTimer(e posix.Expiry) (merged bool, errno linux.Errno) {
	return false, sendSignal(e.Thread, e.Signal)
}

// sendSignal sends a signal to the program, or to one of its threads if thread is not 0.
func sendSignal(thread int32, signal int) linux.Errno {
	number, first, second := linux.SYS_KILL, uintptr(signal), uintptr(0)
	if thread != 0 {
		number, first, second = linux.SYS_TGKILL, uintptr(thread), uintptr(signal)
	}
	_, _, errno := hostCall(uintptr(number), uintptr(process.PID()), first, second, 0, 0, 0)
	return errno
}

// SendSignal sends a signal to the program.
func SendSignal(signal int) linux.Errno { return sendSignal(0, signal) }

// IgnoredSignals returns the signals that the program ignores: bit n-1 is signal n.
func IgnoredSignals() (set uint64) {
	const last, ignore, setSize = 64, 1, 8
	for n := 1; n <= last; n++ {
		var old [linux.SizeofKernelSigaction]byte
		_, _, errno := hostCall(linux.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&old)), setSize, 0, 0)
		if errno == 0 && linux.ParseKernelSigaction(old[:]).Handler == ignore {
			set |= 1 << (n - 1)
		}
	}
	return set
}

// region is the memory of a file that the program maps. It implements fs.Memory: a reserved range of
// addresses whose pages are allocated on first use.
type region struct {
	at, size, usable uintptr
}

// A reservation is larger than the file, because address space is plentiful: the file can grow without
// moving its mappings. leastRegion is in bytes.
const (
	leastRegion = 1 << 30
	regionRoom  = 4 // the reservation is this multiple of the file's size
)

// Reserve implements posix.Kernel.
func (hostKernel) Reserve(size int64) (fs.Memory, error) {
	for _, n := range [...]int64{max(size*regionRoom, leastRegion), size} {
		const flags = linux.MAP_PRIVATE | linux.MAP_ANON | linux.MAP_NORESERVE
		if at, _, errno := hostCall(linux.SYS_MMAP, 0, uintptr(n), linux.PROT_NONE, flags, ^uintptr(0), 0); errno == 0 {
			return &region{at: at, size: uintptr(n)}, nil
		}
	}
	return nil, linux.ENOMEM
}

// Address implements fs.Memory.
func (r *region) Address() uint64 { return uint64(r.at) }

// Size implements fs.Memory.
func (r *region) Size() int64 { return int64(r.size) }

// Bytes implements fs.Memory.
func (r *region) Bytes(n int64) ([]byte, error) {
	if more := uintptr(n); more > r.usable {
		_, _, errno := hostCall(linux.SYS_MPROTECT, r.at+r.usable, more-r.usable, linux.PROT_READ|linux.PROT_WRITE, 0, 0, 0)
		if errno != 0 {
			return nil, errno
		}
		r.usable = more
	}
	return bytesAt(ptr(r.at), int(n)), nil
}

// Clear implements fs.Memory. It zeroes the first partial page and returns whole pages to the kernel.
func (r *region) Clear(from, to int64) {
	whole := min((from+pageSize-1)&^(pageSize-1), to)
	clear(bytesAt(ptr(r.at+uintptr(from)), int(whole-from)))
	if whole < to {
		hostCall(linux.SYS_MADVISE, r.at+uintptr(whole), uintptr(to-whole), linux.MADV_DONTNEED, 0, 0, 0)
	}
}

// Free implements fs.Memory.
func (r *region) Free() { hostCall(linux.SYS_MUNMAP, r.at, r.size, 0, 0, 0, 0) }

// pageSize is the page size, in bytes.
const pageSize = 4096
