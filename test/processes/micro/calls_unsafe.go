package main

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The wrappers here make raw system calls. They bypass the Go scheduler, so a call takes the same time as in a C
// program.

func raw(number, a, b, c uintptr) (uintptr, error) {
	n, _, errno := syscall.RawSyscall(number, a, b, c)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

func raw6(number, a, b, c, d, e, f uintptr) (uintptr, error) {
	n, _, errno := syscall.RawSyscall6(number, a, b, c, d, e, f)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

// fork makes a child that may make raw system calls only: it has no other thread.
func fork() (int, error) {
	pid, err := raw(syscall.SYS_FORK, 0, 0, 0)
	return int(pid), err
}

func exit(status int) { raw(syscall.SYS_EXIT_GROUP, uintptr(status), 0, 0) }

func wait(pid int) error {
	for {
		_, err := raw6(syscall.SYS_WAIT4, uintptr(pid), 0, 0, 0, 0, 0)
		if err != syscall.EINTR {
			return err
		}
	}
}

func kill(pid, signal int) error {
	_, err := raw(syscall.SYS_KILL, uintptr(pid), uintptr(signal), 0)
	return err
}

// execve needs NUL-terminated strings and a list that ends with nil.
func execve(path *byte, args, env **byte) error {
	_, err := raw(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(args)), uintptr(unsafe.Pointer(env)))
	return err
}

func pipe(ends *[2]int) error {
	var fds [2]int32
	_, err := raw(syscall.SYS_PIPE2, uintptr(unsafe.Pointer(&fds)), 0, 0)
	ends[0], ends[1] = int(fds[0]), int(fds[1])
	return err
}

func closeFD(fd int) { raw(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

// The functions write and read transfer from and to buffer. It is a variable, so that its address does not move with
// a stack.
var buffer [64 << 10]byte

func read(fd, n int) (int, error) {
	got, err := raw(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&buffer)), uintptr(n))
	return int(got), err
}

func write(fd, n int) (int, error) {
	put, err := raw(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&buffer)), uintptr(n))
	return int(put), err
}

func sendFloat(fd int, v float64) {
	binary.LittleEndian.PutUint64(buffer[:], math.Float64bits(v))
	write(fd, 8)
}

func receiveFloat(fd int) (float64, error) {
	n, err := read(fd, 8)
	if err != nil || n != 8 {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(buffer[:])), nil
}

func mmap(length, prot, flags, fd int) (uintptr, error) {
	return raw6(syscall.SYS_MMAP, 0, uintptr(length), uintptr(prot), uintptr(flags), uintptr(fd), 0)
}

func munmap(addr uintptr, length int) error {
	_, err := raw(syscall.SYS_MUNMAP, addr, uintptr(length), 0)
	return err
}

func mprotect(addr uintptr, length, prot int) error {
	_, err := raw(syscall.SYS_MPROTECT, addr, uintptr(length), uintptr(prot))
	return err
}

// at returns the byte at an address of a mapping. A mapping is not in the Go heap, so its address is a plain number.
func at(addr uintptr) *byte { return *(**byte)(unsafe.Pointer(&addr)) }

// word returns the 32-bit word at an address of a mapping.
func word(addr uintptr) *atomic.Uint32 { return *(**atomic.Uint32)(unsafe.Pointer(&addr)) }

const futexWait, futexWake = 0, 1

func futex(addr uintptr, op int, value uint32) error {
	_, err := raw6(syscall.SYS_FUTEX, addr, uintptr(op), uintptr(value), 0, 0, 0)
	return err
}

// stat implements stat(2) of a NUL-terminated path.
func stat(path *byte, st *syscall.Stat_t) error {
	_, err := raw(syscall.SYS_STAT, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(st)), 0)
	return err
}

func openFile(path *byte, flags int) (int, error) {
	fd, err := raw(syscall.SYS_OPEN, uintptr(unsafe.Pointer(path)), uintptr(flags), 0)
	return int(fd), err
}

// cString returns a pointer to a NUL-terminated copy.
func cString(s string) *byte {
	b := append([]byte(s), 0)
	return &b[0]
}

// thread starts a thread that ends at once, which clears the word at tid and wakes a waiter for it
// (CLONE_CHILD_CLEARTID). stack is the end of its stack. It is implemented in thread_amd64.s.
func thread(stack, tid uintptr) uintptr

// moves and hasAVX are implemented in vector_amd64.s.
//
//go:noescape
func moves(n int, memory *[512]byte)
func hasAVX() bool
