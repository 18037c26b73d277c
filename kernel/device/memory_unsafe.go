package device

import (
	"sync"
	"unsafe"

	"loam/driver"
	"loam/kernel"
)

// Memory for devices: contiguous physical pages, which the program accesses through the window (the mapping of all physical
// memory), and pages of the Go heap.

const pageSize = 4096

// kernelCall makes a system call with one of Loam's own numbers.
//
//go:linkname kernelCall runtime.loamCall
func kernelCall(number, a, b uintptr) (result, errno uintptr)

// pool keeps freed buffers, by their number of pages, for the next Allocate. Pages are never returned to the
// kernel.
type pool struct {
	mu   sync.Mutex
	free map[int][]uint64 // addresses of the free buffers, by number of pages
}

// Allocate returns zeroed memory that is physically contiguous. Its physical address is a multiple of align, a
// power of 2. It returns ErrMemory if there is none.
func (m *Machine) Allocate(size, align int) (driver.Buffer, error) {
	if size <= 0 || align <= 0 || align&(align-1) != 0 {
		return driver.Buffer{}, ErrMemory
	}
	n := (size + pageSize - 1) / pageSize
	pa, ok := m.free.take(n, uint64(align))
	if !ok {
		spare := max(align, pageSize)/pageSize - 1
		r, ok := call(kernel.CallAllocate, uintptr(n+spare), 0)
		if !ok {
			return driver.Buffer{}, ErrMemory
		}
		pa = (uint64(r) + uint64(align) - 1) &^ (uint64(align) - 1)
	}
	b := visible(pa, size)
	clear(b)
	return driver.Buffer{Bytes: b, Address: pa}, nil
}

// Free makes a buffer available to Allocate. The device no longer uses it.
func (m *Machine) Free(b driver.Buffer) {
	m.free.mu.Lock()
	defer m.free.mu.Unlock()
	if m.free.free == nil {
		m.free.free = map[int][]uint64{}
	}
	n := (len(b.Bytes) + pageSize - 1) / pageSize
	m.free.free[n] = append(m.free.free[n], b.Address)
}

// take returns the address of a free buffer of the given size and alignment; false if there is none.
func (p *pool) take(pages int, align uint64) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, pa := range p.free[pages] {
		if pa&(align-1) == 0 {
			list := p.free[pages]
			list[i] = list[len(list)-1]
			p.free[pages] = list[:len(list)-1]
			return pa, true
		}
	}
	return 0, false
}

// visible returns the physical memory at pa as a slice, through the kernel's mapping of all physical memory
// (the window).
func visible(pa uint64, size int) []byte {
	// Safety: the kernel has allocated these pages to the caller for good, and the window maps them. The
	// conversion goes through &addr because go vet rejects a direct conversion of an integer to a pointer.
	addr := kernel.WindowTo(pa)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

// Segments stores the physical segments of a piece of the heap or of the window in dst and returns their number. It returns false if
// dst is too short. The pages stay in place while Go refers to b.
func (m *Machine) Segments(b []byte, dst []driver.Segment) (n int, ok bool) {
	if pa, ok := kernel.InWindow(addressOf(b), len(b)); ok && len(b) > 0 && len(dst) > 0 { // such as a page of a program
		dst[0] = driver.Segment{Address: pa, Size: len(b)}
		return 1, true
	}
	for len(b) > 0 {
		at := addressOf(b)
		size := min(len(b), pageSize-int(at%pageSize))
		pa, present := uint64(0), false
		for !present {
			read(b) // makes sure that the page exists; it then stays while Go refers to it
			pa, present = kernel.Physical(at)
		}
		switch {
		case n > 0 && dst[n-1].Address+uint64(dst[n-1].Size) == pa:
			dst[n-1].Size += size
		case n == len(dst):
			return 0, false
		default:
			dst[n] = driver.Segment{Address: pa, Size: size}
			n++
		}
		b = b[size:]
	}
	return n, true
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// read loads the first byte of b. It is not inlined, so that the compiler does not remove the load.
//
//go:noinline
func read(b []byte) byte { return b[0] }

// awaitInterrupts waits for interrupts and returns their bits. Only one goroutine may call it.
//
//go:linkname awaitInterrupts runtime.loamAwaitInterrupts
func awaitInterrupts() uint64

// pollInterrupts makes idle threads wait in CallPoll, where interrupts wake them.
//
//go:linkname pollInterrupts runtime.loamPollInterrupts
func pollInterrupts()

// completes is called before and after the goroutine that serves interrupts calls the function of a driver. That function makes
// goroutines runnable, and no thread needs to be woken for the first one, which runs next.
//
//go:linkname completes runtime.loamCompletes
func completes(begins bool)
