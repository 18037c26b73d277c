package user

import (
	"unsafe"

	"loam/arch/amd64"
	"loam/kernel"
)

// page is the memory of a Context: one physical page, accessed through the window. The assembly that enters ring 3 uses
// the offsets of its fields; a test checks them.
type page struct {
	frame amd64.Frame

	fault  uint64 // address of the last page fault
	fsBase uint64
	gsBase uint64  // with live != 0, the base is in the processor
	root   uint64  // physical address of the space's root table
	active uintptr // address of the set of CPUs that use the space
	stop   uint32  // not 0: the thread must not enter ring 3 (Kick); atomic
	cpu    uint32  // number of the CPU on which the thread is running, plus one; 0: none; atomic

	live  uint32 // number of the CPU whose registers hold the x87 state and the base of GS, plus one; 0: they are in vector and gsBase; atomic
	mxcsr uint32

	watched uint32     // not 0: enter compares seat, and returns vectorMoved in the cases that Context.Watch describes
	placed  uint32     // number of the CPU on which enter last returned vectorMoved, plus one; 0: it never has
	used    uint64     // ticks of the time stamp counter in ring 3, while the thread is not in ring 3
	second  uint64     // physical address of the space's root table for ring 3; used if kernel.Isolated
	vector  [2816]byte // memory written by XSAVE: all vector registers, or only the x87 state
	wide    [16]wideRegister

	// The debug registers. If control is not 0, an entry to ring 3 that restores all registers loads DR0 to DR3 and
	// DR7. A debug exception stores DR6 in status. It also clears the CPU's DR7, which may still hold another thread's
	// value.
	debug   [4]uint64
	control uint64
	status  uint64

	seat uint32 // number of the CPU on which the thread may run, plus one; 0: all CPUs; unseated: none; atomic
	_    [460]byte
}

// wideRegister is an AVX register. Its lower half is the SSE register.
type wideRegister struct{ low, high half }

// enter enters ring 3. It returns the vector that ended the run: an exception, an interrupt, amd64.VectorSyscall,
// or one of the values below if the thread did not run.
//
//go:noescape
//go:linkname enter
func enter(p *page) (vector uint64)

// Results of enter if the thread has not run.
const (
	vectorStopped   = 0x103 // stop is set, or the Go runtime has requested preemption
	vectorElsewhere = 0x104 // another CPU holds the x87 state of the context
	vectorMoved     = 0x105 // the CPU or its last context has changed: see Context.Watch
	vectorUnseated  = 0x106 // seat does not allow this CPU, whose number is in the bits from 32 up
)

// saveOwn saves the x87 state if the calling CPU holds it. Otherwise it returns the number of the CPU that holds the
// state, plus one. It returns 0 if the state is in vector.
//
//go:noescape
//go:linkname saveOwn
func saveOwn(p *page) (live uint32)

// forget flushes translations of the calling CPU if it uses the page tables at root. pages is the number of pages to flush, beginning with
// the page at va; 0 means all pages. forget returns, as a bit set, the other CPUs in active, which is the set of CPUs that may use these
// page tables.
//
//go:noescape
//go:linkname forget
func forget(active *uint64, root, va, pages uint64) (others uint64)

// copyDirect copies n bytes between kernel memory and user memory, by the virtual addresses of both, if the calling CPU uses
// the page tables at root. It returns false if the CPU does not, if a page is not mapped for the access, or if the CPU is
// interrupted.
//
//go:linkname copyDirect
func copyDirect(root uint64, to, from, n uintptr) (done bool)

// readDirect and writeDirect copy user memory at va to b, and b to user memory at va, by copyDirect.
func (s *Space) readDirect(va uint64, b []byte) bool {
	// Safety: the compiler keeps b in place during the call of a function in assembly.
	return isDirect(va, len(b)) && copyDirect(s.tables.Root, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(va), uintptr(len(b)))
}

func (s *Space) writeDirect(va uint64, b []byte) bool {
	// Safety: as in readDirect.
	return isDirect(va, len(b)) && copyDirect(s.tables.Root, uintptr(va), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
}

// kernelCall makes a system call that only Loam has, by its number.
//
//go:linkname kernelCall runtime.loamCall
func kernelCall(number, a, b uintptr) (result, errno uintptr)

// serveInterrupts runs the goroutine that serves interrupts of devices, unless another thread is about to run it.
//
//go:linkname serveInterrupts runtime.loamServeInterrupts
func serveInterrupts()

// callWithArray makes a kernelCall whose arguments are the address and the length of an array of physical addresses.
// The array does not move during the call, since it is in the Go heap.
func callWithArray(number uintptr, list []uint64) (uintptr, uintptr) {
	return kernelCall(number, uintptr(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list)))
}

// pageAt returns the page structure at a physical address.
func pageAt(pa uint64) *page {
	// Safety: the page was allocated by the kernel, and the window maps it. The conversion goes through &addr because
	// go vet rejects a direct conversion of an integer to a pointer.
	addr := kernel.WindowTo(pa)
	return *(**page)(unsafe.Pointer(&addr))
}

// Bytes returns the content of a page. The caller owns the page.
func (p *Pages) Bytes(pa uint64) []byte { return bytesAt(p.window+uintptr(pa), amd64.PageSize) }

func bytesAt(addr uintptr, n int) []byte {
	// Safety: the page was allocated by the kernel, and the window maps it, as in pageAt.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

// word returns the first 64-bit word of a page.
func (p *Pages) word(pa uint64) *uint64 {
	// Safety: the page was allocated by the kernel, and the window maps it, as in pageAt.
	addr := p.window + uintptr(pa)
	return *(**uint64)(unsafe.Pointer(&addr))
}

// wordAt returns the 32-bit word at the beginning of b, which is in user memory and aligned to 4 bytes.
func wordAt(b []byte) *uint32 {
	// Safety: b has at least 4 bytes.
	return (*uint32)(unsafe.Pointer((*[4]byte)(b)))
}

// halvesAt returns the first 256 bytes of b as 16 register halves.
func halvesAt(b []byte) *[16]half {
	// Safety: the array has the size of a [16]half, and the processor accepts any alignment.
	return (*[16]half)(unsafe.Pointer((*[256]byte)(b)))
}

func addressOf(p *uint64) uintptr { return uintptr(unsafe.Pointer(p)) }

func (p *page) vectors() []byte { return p.vector[:kernel.VectorSize()] }
