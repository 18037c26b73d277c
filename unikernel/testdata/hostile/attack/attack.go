// Package attack is shared by the hostile programs. It names the targets of their attacks, and makes system calls in
// ways that bypass what Loam puts between the standard library and the host. The test creates the targets, and checks
// afterwards that they are unchanged.
package attack

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Targets outside of the program. The folder's path is constant, because code that runs before the runtime has no
// environment variables.
const (
	Secret = "/tmp/loam-hostile/secret" // must not be read: its content must not be printed
	Mark   = "/tmp/loam-hostile/mark"   // must not be created
)

// Victim returns the ID of a process that must survive.
func Victim() uintptr { return number("HOSTILE_PID") }

// Port returns a port of 127.0.0.1 that must not be connected to.
func Port() int { return int(number("HOSTILE_PORT")) }

func number(variable string) uintptr {
	n, _ := strconv.Atoi(os.Getenv(variable))
	return uintptr(n)
}

// Syscall makes a system call by an instruction of this package.
//
//go:noescape
func Syscall(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// Gate makes a system call by calling the runtime's function for system calls.
//
//go:noescape
func Gate(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// past makes a system call by jumping to the SYSCALL instruction in the runtime's function, so that the function's
// beginning does not run.
//
//go:noescape
func past(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// Jump is past in a process. In a machine it is Gate: there the instruction needs a stack frame, which the function's
// beginning creates.
func Jump(number, a1, a2, a3, a4, a5, a6 uintptr) (result int) {
	if *(*byte)(unsafe.Pointer(instructionAt)) == 0xe8 {
		return Gate(number, a1, a2, a3, a4, a5, a6)
	}
	return past(number, a1, a2, a3, a4, a5, a6)
}

// Syscall32 makes a system call as 32-bit programs do.
//
//go:noescape
func Syscall32(number, a1, a2, a3 uintptr) (result int32)

// Early creates Mark. It may run before the runtime is initialised: it uses no stack beyond its own frame, and neither
// the runtime nor its data.
func Early()

// A Way makes a system call.
type Way func(number, a1, a2, a3, a4, a5, a6 uintptr) int

// Ways are all ways to make a 64-bit system call.
var Ways = []Way{Syscall, Gate, Jump}

// String returns the address of a copy of s that ends with a NUL. The copy is never freed.
func String(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// Words returns the address of its arguments in memory that is never freed.
func Words(w ...uintptr) uintptr {
	keptWords = append(keptWords, w)
	return uintptr(unsafe.Pointer(&w[0]))
}

var (
	kept      [][]byte
	keptWords [][]uintptr
)

// Here is AT_FDCWD.
const Here = ^uintptr(99)

// Write creates Mark and prints Secret. opened opens a file by the system call that is attacked, and returns a
// descriptor or a negative errno.
func Write(way Way, opened func(path, flags uintptr) int) {
	fd := opened(String(Mark), syscall.O_CREAT|syscall.O_WRONLY)
	if fd >= 0 {
		way(syscall.SYS_WRITE, uintptr(fd), String("was here"), 8, 0, 0, 0)
	}
	Print(way, opened(String(Secret), syscall.O_RDONLY))
}

// Print reads from a descriptor and prints the data, which the test looks for.
func Print(way Way, fd int) {
	b := make([]byte, 64)
	if fd < 0 {
		return
	}
	if n := way(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 64, 0, 0, 0); n > 0 {
		fmt.Printf("%s\n", b[:n])
	}
}

// Exec replaces the program by a shell that creates Mark. exec makes the system call.
func Exec(exec func(path, args, env uintptr) int) {
	args := Words(String("/bin/sh"), String("-c"), String("echo was here >"+Mark), 0)
	exec(String("/bin/sh"), args, Words(0))
}
