// Command assembly makes system calls by SYSCALL instructions of its own, without the standard library. Meanwhile other
// goroutines compute without yielding, and the garbage collector runs.
package main

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// call makes a system call. It returns a negative errno if the call fails.
//
//go:noescape
func call(trap, a1, a2, a3, a4, a5, a6 uintptr) uintptr

// send writes 8 bytes from its own stack to a descriptor. It returns them as it reads them after the call through a
// register that still points to them, or 0 if they were not written.
func send(fd uintptr) (first uint64)

// keeps makes a call with one argument and reports whether it preserved all other registers.
func keeps(trap, fd uintptr) bool

func main() {
	var stop atomic.Bool
	var busy sync.WaitGroup
	busy.Go(func() {
		for !stop.Load() {
		}
	})
	busy.Go(func() {
		for !stop.Load() {
			runtime.GC()
		}
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				calls()
			}
		})
	}
	all.Wait()
	stop.Store(true)
	busy.Wait()
	onLockedThread()
	check.Done()
}

// calls makes some calls that the host's kernel serves, and some that Loam serves.
func calls() {
	check.Equal(call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0), uintptr(os.Getpid()), "getpid")
	check.Equal(errno(call(499, 0, 0, 0, 0, 0, 0)), syscall.ENOSYS, "a number that nobody knows")
	missing := [...]byte{'/', 'n', 'o', 0}
	check.Equal(errno(call(syscall.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&missing)), 0, 0, 0, 0)), syscall.ENOENT, "a file that is not there")
	hosts := [...]byte{'/', 'e', 't', 'c', '/', 'h', 'o', 's', 't', 's', 0}
	file := call(syscall.SYS_OPENAT, 0, uintptr(unsafe.Pointer(&hosts)), syscall.O_RDONLY, 0, 0, 0)
	check.Equal(errno(file), 0, "openat")
	check.That(strings.HasPrefix(receive(file), "127.0.0.1"), "/etc/hosts begins otherwise")
	check.Equal(errno(call(syscall.SYS_CLOSE, file, 0, 0, 0, 0, 0)), 0, "close of a file")
	check.Equal(errno(call(syscall.SYS_READ, 1<<25-1, 0, 0, 0, 0, 0)), syscall.EBADF, "a descriptor that is not open")

	var pair [2]int32
	check.Equal(errno(call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)), 0, "socketpair")
	a, b := uintptr(pair[0]), uintptr(pair[1])
	// Each goroutine has a new stack, which has to grow. One blocks until the other has sent.
	received := make(chan string)
	go func() { received <- receive(b) }()
	sent := make(chan uint64)
	go func() { sent <- send(a) }()
	check.Equal(<-sent, 0x6b6361747320610a, "what stands on the stack")
	check.Equal(<-received, "\na stack", "what was sent")
	kept := make(chan bool)
	go func() { kept <- keeps(syscall.SYS_CLOSE, a) }()
	check.That(<-kept, "close: registers were lost")
	check.That(keeps(syscall.SYS_GETPID, 0), "getpid: registers were lost")
	check.Equal(errno(call(syscall.SYS_CLOSE, b, 0, 0, 0, 0, 0)), 0, "close")
}

// receive reads once. The buffer is on the stack.
func receive(fd uintptr) string {
	var buffer [16]byte
	n := call(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&buffer)), uintptr(len(buffer)), 0, 0, 0)
	if errno(n) != 0 {
		return errno(n).Error()
	}
	return string(buffer[:n])
}

// onLockedThread writes a line to standard output.
func onLockedThread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	line := []byte("from assembly\n")
	check.Equal(call(syscall.SYS_WRITE, 1, uintptr(unsafe.Pointer(&line[0])), uintptr(len(line)), 0, 0, 0), uintptr(len(line)), "write")
}

func errno(result uintptr) syscall.Errno {
	if int(result) < 0 {
		return syscall.Errno(-result)
	}
	return 0
}
