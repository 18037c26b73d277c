package kernel

import (
	"unsafe"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
)

// Access to memory by address. The caller has made sure that the memory is mapped: see touch.
//
// Safety, for all of this file: the kernel shares the program's address space, and the addresses belong to pages
// that were mapped before. The conversion goes through &addr because go vet rejects a direct conversion of an
// integer to a pointer.

func word(addr uint64) *uint64   { return *(**uint64)(unsafe.Pointer(&addr)) }
func word32(addr uint64) *uint32 { return *(**uint32)(unsafe.Pointer(&addr)) }

func bytesAt(addr uint64, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

// textBytes returns the bytes of a string constant. They must not be written.
func textBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// physical returns physical memory from address 0 up to size.
func physical(size int) []byte { return bytesAt(boot.Window, size) }

// frameOf returns the trap frame in a thread's page. The frame is at the end of the page; the vector registers are
// at the beginning.
func frameOf(page uintptr) *amd64.Frame {
	return frameByAddress(page + amd64.PageSize - amd64.FrameSize)
}

func frameByAddress(addr uintptr) *amd64.Frame { return *(**amd64.Frame)(unsafe.Pointer(&addr)) }

// addressOf returns the address of a variable that the processor or the entry code accesses. Such a variable must
// not be in the heap.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func cpuAt(addr uintptr) *cpu { return *(**cpu)(unsafe.Pointer(&addr)) }

// kernel returns the core (the state of the kernel) that the CPU belongs to.
func (c *cpu) kernel() *core { return *(**core)(unsafe.Pointer(&c.core)) }

func actionAt(addr uint64) *signal.Action { return *(**signal.Action)(unsafe.Pointer(&addr)) }

func stackAt(addr uint64) *signal.Stack { return *(**signal.Stack)(unsafe.Pointer(&addr)) }

func signalFrameAt(addr uint64) *signal.Frame { return *(**signal.Frame)(unsafe.Pointer(&addr)) }

// symbol returns the function that contains pc, and its source position. The name is empty if pc is not in the
// program's code. frameless reports that the function has pushed nothing on the stack at pc.
//
//go:linkname symbol runtime.loamSymbol
func symbol(pc uintptr) (name, file string, line int, frameless bool)
