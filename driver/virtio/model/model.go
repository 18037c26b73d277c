// Package model is a machine with virtio devices in the same process, for tests:
// the device's side of everything in loam/driver/virtio, over PCI and over MMIO. It
// is written from the same standard (virtio 1.2) and shares no code with the
// drivers, so what the two agree on is likely right.
//
// A device does as it should, unless its Hostile says otherwise: then it lies about
// what it has done. Time is that of the test, which may be fake (testing/synctest):
// a device waits only at channels.
package model

import (
	"fmt"
	"sync"

	"loam/driver"
)

// Machine implements driver.Machine.
type Machine struct {
	mu         sync.Mutex        // guards all below
	memory     map[uint64][]byte // allocated, by address
	heap       map[uint64][]byte // of the Go heap: pieces that Segments was asked about
	next       uint64            // device address of the next Allocate
	held       int               // bytes allocated
	heapless   bool              // devices cannot reach the Go heap
	page       uint64            // memory of the heap is in pieces of this size
	windows    []window
	messages   []*Interrupt
	functions  map[uint32]*function // by bus, device and function as a port has them
	configPort uint32

	lines Lines
}

// Option changes a machine.
type Option func(m *Machine)

// Heapless is a machine whose devices cannot reach the Go heap: drivers copy.
func Heapless(m *Machine) { m.heapless = true }

// Pages is a machine whose memory is in pieces of n bytes, a power of two.
func Pages(n uint64) Option { return func(m *Machine) { m.page = n } }

// New returns a machine without a device.
func New(options ...Option) *Machine {
	m := &Machine{
		memory: map[uint64][]byte{}, heap: map[uint64][]byte{}, next: 1 << 32, page: 4096,
		functions: map[uint32]*function{},
	}
	for _, o := range options {
		o(m)
	}
	return m
}

var _ driver.Machine = (*Machine)(nil)

// Allocate implements driver.Machine.
func (m *Machine) Allocate(size, align int) (driver.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := make([]byte, size+8)[:size:size] // Go aligns what is longer than 8 bytes to 8
	at := (m.next + uint64(align) - 1) &^ (uint64(align) - 1)
	m.next = at + uint64(size) + 4096 // nothing is behind it
	m.memory[at] = b
	m.held += size
	return driver.Buffer{Bytes: b, Address: at}, nil
}

// Free implements driver.Machine.
func (m *Machine) Free(b driver.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.memory[b.Address]; !ok {
		panic("model: memory freed twice")
	}
	delete(m.memory, b.Address)
	m.held -= len(b.Bytes)
}

// Held is how many bytes are allocated.
func (m *Machine) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// Segments implements driver.Machine. The machine remembers what it was asked about:
// a device reaches that and nothing else.
func (m *Machine) Segments(b []byte, dst []driver.Segment) (n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heapless {
		return 0, false
	}
	for len(b) > 0 {
		at := addressOf(b)
		piece := b[:min(uint64(len(b)), m.page-at&(m.page-1))]
		if n == len(dst) {
			return n, false
		}
		m.heap[at] = piece
		dst[n] = driver.Segment{Address: at, Size: len(piece)}
		n, b = n+1, b[len(piece):]
	}
	return n, true
}

// at is memory as a device sees it. Whoever asks for what it was not given is a
// driver with a fault.
func (m *Machine) at(address uint64, size int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.heap[address]; len(b) >= size {
		return b[:size]
	}
	for start, b := range m.memory {
		if address >= start && address-start <= uint64(len(b)) && uint64(size) <= uint64(len(b))-(address-start) {
			return b[address-start:][:size]
		}
	}
	panic(fmt.Sprintf("model: a device was told of %d bytes at %#x, where there is no memory for it", size, address))
}
