// Package attack has what the hostile programs share: the targets, and ways to make a system call past
// everything that Loam puts in front of the standard library. A test makes the targets and looks
// afterwards whether anything has happened to them.
package attack

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Targets outside of the program. The folder is fixed, since code that runs before the runtime has no
// environment.
const (
	Secret = "/tmp/loam-hostile/secret" // a file whose content must not be printed
	Mark   = "/tmp/loam-hostile/mark"   // a file that must not be there afterwards
)

// Victim is the ID of a process that must go on.
func Victim() uintptr { return number("HOSTILE_PID") }

// Port is one of 127.0.0.1 at which nobody must call.
func Port() int { return int(number("HOSTILE_PORT")) }

func number(variable string) uintptr {
	n, _ := strconv.Atoi(os.Getenv(variable))
	return uintptr(n)
}

// Syscall makes a system call by an instruction of this package.
//
//go:noescape
func Syscall(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// Gate makes a system call by calling the runtime's own function for it.
//
//go:noescape
func Gate(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// past makes a system call by jumping to the instruction of the runtime's function, past its beginning.
//
//go:noescape
func past(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)

// Jump is past in a process. In a machine it is Gate: there the function has a stack frame, which its beginning makes.
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

// Early writes Mark. It uses no stack beyond its own frame, and neither the runtime nor its data.
func Early()

// A Way makes a system call.
type Way func(number, a1, a2, a3, a4, a5, a6 uintptr) int

// Ways are all of 64 bits.
var Ways = []Way{Syscall, Gate, Jump}

// String returns the address of a string for the kernel, which stays.
func String(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// Words returns the address of words for the kernel, which stay.
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

// Write makes Mark with a descriptor that opened gives.
func Write(way Way, opened func(path, flags uintptr) int) {
	fd := opened(String(Mark), syscall.O_CREAT|syscall.O_WRONLY)
	if fd >= 0 {
		way(syscall.SYS_WRITE, uintptr(fd), String("was here"), 8, 0, 0, 0)
	}
	Print(way, opened(String(Secret), syscall.O_RDONLY))
}

// Print prints what a descriptor has.
func Print(way Way, fd int) {
	b := make([]byte, 64)
	if fd < 0 {
		return
	}
	if n := way(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 64, 0, 0, 0); n > 0 {
		fmt.Printf("%s\n", b[:n])
	}
}

// Exec starts a shell that makes Mark, in place of the program.
func Exec(exec func(path, args, env uintptr) int) {
	args := Words(String("/bin/sh"), String("-c"), String("echo was here >"+Mark), 0)
	exec(String("/bin/sh"), args, Words(0))
}
