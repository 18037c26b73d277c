package kernel

import (
	"unsafe"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
)

// Memory by address. Who asks has made sure that it is there: see touch.
//
// Safety, for all of this file: the kernel shares the program's address space,
// and addresses are those of pages that were mapped before. The detour by &addr
// is for vet, which cannot know that addr holds a pointer.

// windowAddress is boot.Window as a number of the processor's.
const windowAddress uintptr = boot.Window

func word(addr uint64) *uint64   { return *(**uint64)(unsafe.Pointer(&addr)) }
func word32(addr uint64) *uint32 { return *(**uint32)(unsafe.Pointer(&addr)) }

func bytesAt(addr uint64, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

// textBytes are the bytes of a constant, to be read.
func textBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// physical is memory by physical address, from 0 up to a size.
func physical(size int) []byte { return bytesAt(boot.Window, size) }

// frameOf is the frame in a thread's page: it is at the end. The vector registers
// are at the beginning.
func frameOf(page uintptr) *amd64.Frame {
	return frameByAddress(page + amd64.PageSize - amd64.FrameSize)
}

func frameByAddress(addr uintptr) *amd64.Frame { return *(**amd64.Frame)(unsafe.Pointer(&addr)) }

// addressOf are the addresses of variables that the processor is told of. They
// are not in the heap.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func cpuAt(addr uintptr) *cpu { return *(**cpu)(unsafe.Pointer(&addr)) }

func actionAt(addr uint64) *signal.Action { return *(**signal.Action)(unsafe.Pointer(&addr)) }

func stackAt(addr uint64) *signal.Stack { return *(**signal.Stack)(unsafe.Pointer(&addr)) }

func signalFrameAt(addr uint64) *signal.Frame { return *(**signal.Frame)(unsafe.Pointer(&addr)) }

// symbol is the function that an instruction belongs to, and where its source is;
// empty if it is none of the program's. frameless: it has nothing on the stack there.
//
//go:linkname symbol runtime.loamSymbol
func symbol(pc uintptr) (name, file string, line int, frameless bool)
