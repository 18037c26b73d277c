package main

import (
	"syscall"
	"unsafe"
)

// What no program should do.

func peek(addr uintptr) byte { return **(**byte)(unsafe.Pointer(&addr)) }

func poke(s string) { *unsafe.StringData(s) = 'C' }

func pokeAt(addr uintptr) { **(**byte)(unsafe.Pointer(&addr)) = 0xcc }

// codeOf is where the code of a function begins.
func codeOf(f func()) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// jump calls bytes as if they were a function.
func jump(code []byte) {
	jumpTo(uintptr(unsafe.Pointer(unsafe.SliceData(code))))
}

func jumpTo(at uintptr) {
	f := unsafe.Pointer(&at)
	(*(*func())(unsafe.Pointer(&f)))()
}

// illegal runs an instruction that is none.
func illegal()

// kernelAPIC is where the kernel finds the registers of its interrupt controller.
//
//go:linkname kernelAPIC loam/kernel.apic
var kernelAPIC uintptr

// breakKernel has the kernel fail when it uses them next, behind a call that nobody
// serves.
func breakKernel() {
	syscall.RawSyscall(499, 0, 0, 0)
	kernelAPIC = 0x1000
}

// kernelCPU is the beginning of what the kernel knows of its first processor.
//
//go:linkname kernelCPU loam/kernel.cpus
var kernelCPU [4]uintptr

// narrowKernel leaves the first processor little of its stack in the kernel.
func narrowKernel() {
	const stack, size, left = 3, 32 << 10, 512 // a field, and bytes
	kernelCPU[stack] -= size - left
}

// kernelTables is where the kernel finds the root of its page tables, and where it sees
// all memory.
//
//go:linkname kernelTables loam/kernel.tables
var kernelTables [2]uintptr

// blindKernel has the kernel fail when it looks at its page tables next.
func blindKernel() { kernelTables[1] = 0x1000 }

// block holds signals back from this thread.
func block(set *uint64) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 0, uintptr(unsafe.Pointer(set)), 0, 8, 0, 0)
}

// fill asks the kernel for random bytes.
func fill(b []byte) (int, syscall.Errno) {
	const getrandom = 318
	n, _, errno := syscall.RawSyscall(getrandom, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	return int(n), errno
}
