package main

import (
	"syscall"
	"unsafe"
)

// Actions that no program should take, to test how the kernel fails.

func peek(addr uintptr) byte { return **(**byte)(unsafe.Pointer(&addr)) }

func poke(s string) { *unsafe.StringData(s) = 'C' }

func pokeAt(addr uintptr) { **(**byte)(unsafe.Pointer(&addr)) = 0xcc }

// codeOf returns the address of a function's code.
func codeOf(f func()) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// jump executes bytes as if they were a function.
func jump(code []byte) {
	jumpTo(uintptr(unsafe.Pointer(unsafe.SliceData(code))))
}

func jumpTo(at uintptr) {
	f := unsafe.Pointer(&at)
	(*(*func())(unsafe.Pointer(&f)))()
}

// illegal executes an invalid instruction.
func illegal()

// kernelCore is the beginning of the kernel's state, as words. The constants are indices in it.
//
//go:linkname kernelCore loam/kernel.machineCore
var kernelCore [firstCPU + 4]uintptr

const (
	windowTo   = 1  // the address of the window onto physical memory, which the kernel's page tables use
	controller = 4  // the address of the interrupt controller's registers
	firstCPU   = 27 // the kernel's data about its first processor
)

// breakKernel makes the kernel fail at its next access to the registers of the interrupt controller, after a system call
// that does not exist.
func breakKernel() {
	syscall.RawSyscall(499, 0, 0, 0)
	kernelCore[controller] = 0x1000
}

// narrowKernel leaves the first processor only 512 bytes of its kernel stack.
func narrowKernel() {
	const stack, size, left = firstCPU + 3, 32 << 10, 512 // index of the field; sizes in bytes
	kernelCore[stack] -= size - left
}

// blindKernel makes the kernel fail when it next accesses its page tables.
func blindKernel() { kernelCore[windowTo] = 0x1000 }

// block blocks signals on this thread.
func block(set *uint64) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(set)), 0, 8, 0, 0)
}

// fill fills b with random bytes from the kernel.
func fill(b []byte) (int, syscall.Errno) {
	const getrandom = 318
	n, _, errno := syscall.RawSyscall(getrandom, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	return int(n), errno
}
