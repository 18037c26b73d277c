package device

import (
	"sync"
	"unsafe"

	"loam/driver"
	"loam/kernel"
)

// Memory that devices reach: pages side by side, seen by the program through the
// window onto physical memory, and pages of the Go heap, wherever they are.

const pageSize = 4096

// kernelCall is a system call with a number of ours.
//
//go:linkname kernelCall runtime.loamCall
func kernelCall(number, a, b uintptr) (result, errno uintptr)

// pool has the buffers that have been given back, by their number of pages: the
// kernel takes none back.
type pool struct {
	mu   sync.Mutex
	free map[int][]uint64 // addresses
}

// Allocate returns memory in one piece.
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

// Free takes memory back.
func (m *Machine) Free(b driver.Buffer) {
	m.free.mu.Lock()
	defer m.free.mu.Unlock()
	if m.free.free == nil {
		m.free.free = map[int][]uint64{}
	}
	n := (len(b.Bytes) + pageSize - 1) / pageSize
	m.free.free[n] = append(m.free.free[n], b.Address)
}

// take looks for a buffer of so many pages.
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

// visible is memory at a physical address.
func visible(pa uint64, size int) []byte {
	// Safety: the kernel has given these pages away for good, and the window shows
	// them. The detour by &addr is for vet, which cannot know that addr holds a
	// pointer.
	addr := kernel.WindowTo(pa)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

// Segments says where memory of the heap is.
func (m *Machine) Segments(b []byte, dst []driver.Segment) (n int, ok bool) {
	for len(b) > 0 {
		at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		size := min(len(b), pageSize-int(at%pageSize))
		pa, present := uint64(0), false
		for !present {
			read(b) // a page appears when it is touched, and stays while Go refers to it
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

// read is kept out of line, so that the compiler does not see that nobody wants it.
//
//go:noinline
func read(b []byte) byte { return b[0] }

// awaitInterrupts waits for interrupts and returns their bits; one goroutine may
// call it.
//
//go:linkname awaitInterrupts runtime.loamAwaitInterrupts
func awaitInterrupts() uint64

// pollInterrupts has idle threads wait where interrupts wake them.
//
//go:linkname pollInterrupts runtime.loamPollInterrupts
func pollInterrupts()
