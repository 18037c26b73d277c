// Command sealed makes system calls in assembly. Loam must serve them or refuse them; they must not reach the host's
// kernel.
package main

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

// call makes a system call, and returns RAX.
//
//go:noescape
func call(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// call32 makes a system call as 32-bit programs do.
func call32(number uintptr) (result int32)

// readByte reads one byte. It returns 0 if the call has changed a register that it must preserve.
func readByte(fd int) byte

func main() {
	refused()
	streams()
	files()
	served()
	waits()
	inLoop()
	end()
}

// refused: calls that Loam does not serve fail.
func refused() {
	path := append([]byte("/bin/true"), 0)
	p := uintptr(unsafe.Pointer(&path[0]))
	for name, c := range map[string]struct {
		args [4]uintptr
		want syscall.Errno
	}{
		"execve":                           {[4]uintptr{syscall.SYS_EXECVE, p}, syscall.ENOSYS},
		"execveat":                         {[4]uintptr{322, 0, p}, syscall.ENOSYS},
		"fork":                             {[4]uintptr{syscall.SYS_FORK}, syscall.ENOSYS},
		"vfork":                            {[4]uintptr{syscall.SYS_VFORK}, syscall.ENOSYS},
		"clone":                            {[4]uintptr{syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)}, syscall.ENOSYS},
		"clone3":                           {[4]uintptr{435}, syscall.ENOSYS},
		"ptrace":                           {[4]uintptr{syscall.SYS_PTRACE}, syscall.EPERM},
		"io_uring_setup":                   {[4]uintptr{425, 8}, syscall.ENOSYS},
		"memfd_secret":                     {[4]uintptr{447}, syscall.ENOSYS},
		"mount":                            {[4]uintptr{syscall.SYS_MOUNT, p, p, p}, syscall.EPERM},
		"unshare":                          {[4]uintptr{syscall.SYS_UNSHARE, syscall.CLONE_NEWUSER}, syscall.EPERM},
		"bpf":                              {[4]uintptr{321}, syscall.EPERM},
		"kill of the parent":               {[4]uintptr{syscall.SYS_KILL, uintptr(os.Getppid()), uintptr(syscall.SIGKILL)}, syscall.ESRCH},
		"limits of the parent":             {[4]uintptr{syscall.SYS_PRLIMIT64, uintptr(os.Getppid())}, syscall.ENOSYS},
		"a descriptor of a link":           {[4]uintptr{syscall.SYS_WRITE, 1<<24 + 3, p, 1}, syscall.EBADF},
		"a number of x32, getppid":         {[4]uintptr{syscall.SYS_GETPPID | 1<<30}, syscall.ENOSYS},
		"a number that is nobody's":        {[4]uintptr{100000}, syscall.ENOSYS},
		"a number that is nobody's at all": {[4]uintptr{^uintptr(0)}, syscall.ENOSYS},
	} {
		check.Equal(call(c.args[0], c.args[1], c.args[2], c.args[3], 0, 0, 0), -int(c.want), name)
	}
	check.Equal(call32(20), -int32(syscall.ENOSYS), "getpid of 32 bits")
	runtime.KeepAlive(path)
}

// streams: by the numbers of host descriptors, the program can only read or write the standard streams in order.
func streams() {
	const host = 1 << 24 // the difference between Loam's numbers for descriptors of the host and the host's numbers
	b := make([]byte, 1)
	_, err := syscall.Pread(host, b, 0)
	check.Equal(err, error(syscall.ENOSYS), "standard input from its beginning")
	for fd := range 3 {
		err := syscall.Sendmsg(host+fd, b, nil, &syscall.SockaddrUnix{Name: "/dev/log"}, 0)
		check.Equal(err, error(syscall.ENOSYS), "a message to somebody else")
	}
	check.Nil(syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 1 << 30, Max: 1 << 30}), "setrlimit")
	var r syscall.Rlimit
	check.Nil(syscall.Getrlimit(syscall.RLIMIT_CORE, &r), "getrlimit")
	check.Equal(r, syscall.Rlimit{Cur: 1 << 30, Max: 1 << 30}, "the limit of core dumps")
	check.Equal(syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Max: 2 << 30}), error(syscall.EPERM), "a higher one")
}

// files: a system call in assembly opens files of Loam, not of the host. The program's arguments are paths that exist
// on the host.
func files() {
	for _, name := range os.Args[1:] {
		path := append([]byte(name), 0)
		p := uintptr(unsafe.Pointer(&path[0]))
		const here = ^uintptr(99) // AT_FDCWD
		check.Equal(call(syscall.SYS_OPENAT, here, p, syscall.O_RDONLY, 0, 0, 0), -int(syscall.ENOENT), "open "+name)
		check.Equal(call(syscall.SYS_UNLINK, p, 0, 0, 0, 0, 0), -int(syscall.ENOENT), "unlink "+name)
		runtime.KeepAlive(path)
	}
	const mine = "/tmp/of-the-program"
	path := append([]byte(mine), 0)
	fd := call(syscall.SYS_OPEN, uintptr(unsafe.Pointer(&path[0])), syscall.O_CREAT|syscall.O_WRONLY, 0o600, 0, 0, 0)
	check.Equal(call(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&path[0])), 4, 0, 0, 0), 4, "write")
	check.Nil(syscall.Close(fd), "close")
	b, err := os.ReadFile(mine)
	check.Nil(err, "read of what assembly has written")
	check.Equal(string(b), mine[:4], "what assembly has written")
}

// served: a call in assembly has the same effect as one of package syscall.
func served() {
	fd := call(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM, 0, 0, 0, 0)
	name, err := syscall.Getsockname(fd)
	check.Nil(err, "the name of a socket that assembly has made")
	_, ok := name.(*syscall.SockaddrInet4)
	check.Equal(ok, true, "it is a socket of IPv4")
	check.Nil(syscall.Close(fd), "close")
	check.Equal(call(syscall.SYS_READ, 1<<20, 0, 0, 0, 0, 0), -int(syscall.EBADF), "read of no descriptor")
	var fds [2]int32
	check.Equal(call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&fds)), 0, 0), 0, "socketpair")
	b := []byte("between the two")
	check.Equal(call(syscall.SYS_WRITE, uintptr(fds[0]), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0), len(b), "write")
	got := make([]byte, 100)
	n, err := syscall.Read(int(fds[1]), got)
	check.Nil(err, "read")
	check.Equal(string(got[:n]), string(b), "what was written")
	check.Nil(syscall.Close(int(fds[0])), "close")
	check.Nil(syscall.Close(int(fds[1])), "close")
}

// waits: a call that blocks holds no thread and no processor. Its goroutine's stack does not move, even during garbage
// collections.
func waits() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const many = 100
	var group sync.WaitGroup
	var fds [many][2]int
	for i := range fds {
		var err error
		fds[i], err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		check.Nil(err, "socketpair")
		group.Go(func() { check.Equal(deep(100, fds[i][0]), 'x', "a byte") })
	}
	for range 10 {
		time.Sleep(time.Millisecond)
		runtime.GC()
	}
	for i := range fds {
		_, err := syscall.Write(fds[i][1], []byte("x"))
		check.Nil(err, "write")
	}
	group.Wait()
	for i := range fds {
		check.Nil(syscall.Close(fds[i][0]), "close")
		check.Nil(syscall.Close(fds[i][1]), "close")
	}
}

// deep calls readByte on a large stack. Most of the stack is unused, so the collector would shrink it.
func deep(n, fd int) byte {
	if n > 0 {
		var room [200]byte
		b := deep(n-1, fd)
		room[n] = b
		return room[n]
	}
	return shallow(fd)
}

//go:noinline
func shallow(fd int) byte { return readByte(fd) }

// inLoop: many goroutines make calls during garbage collections, preemptions and signals.
func inLoop() {
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = strings.Repeat("garbage", 1000)
			}
		}
	}()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 500 {
				check.Equal(call(syscall.SYS_READ, 1<<20, 0, 0, 0, 0, 0), -int(syscall.EBADF), "read of no descriptor")
			}
		})
	}
	group.Wait()
	close(stop)
}

// end: exit_group ends the program after its final work, such as flushing.
func end() {
	check.Report()
	call(syscall.SYS_EXIT_GROUP, 7, 0, 0, 0, 0, 0)
	check.That(false, "the program goes on after its end")
	check.Done()
}
