// Package model simulates a machine with virtio devices in the same process, for tests. It implements the device's side
// of all protocols in loam/driver/virtio, over PCI and over MMIO. Model and drivers are both written from the standard
// (virtio 1.2) and share no code. So behaviour on which they agree is probably correct.
//
// A device conforms to the standard unless its field Hostile is set. The model can be used with fake time
// (testing/synctest), because its devices block only on channels.
package model

import (
	"fmt"
	"sync"

	"loam/driver"
)

// Machine is the simulated machine. It implements driver.Machine.
type Machine struct {
	mu         sync.Mutex        // guards all fields below
	memory     map[uint64][]byte // allocated memory, by device address
	heap       map[uint64][]byte // memory of the Go heap that was passed to Segments, by device address
	next       uint64            // device address of the next Allocate
	held       int               // number of bytes that are allocated
	heapless   bool              // devices cannot access the Go heap
	page       uint64            // size in bytes: a segment of heap memory does not cross a multiple of it
	windows    []window
	messages   []*Interrupt
	calls      map[uint32]func() // functions to call, by number of the message; nil: see Calls
	functions  map[uint32]*slot  // key: bus, device and function, encoded as in a configuration address
	configPort uint32

	lines Lines
}

// Option configures a machine.
type Option func(m *Machine)

// Heapless makes the devices unable to access the Go heap, so that drivers have to copy data.
func Heapless(m *Machine) { m.heapless = true }

// Calls makes message-signalled interrupts call a function of the driver, if it has one (driver.Caller).
func Calls(m *Machine) { m.calls = map[uint32]func(){} }

// Pages splits heap memory into segments of at most n bytes; n is a power of two.
func Pages(n uint64) Option { return func(m *Machine) { m.page = n } }

// New returns a machine without devices.
func New(options ...Option) *Machine {
	m := &Machine{
		memory: map[uint64][]byte{}, heap: map[uint64][]byte{}, next: 1 << 32, page: 4096,
		functions: map[uint32]*slot{},
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
	b := make([]byte, size+8)[:size:size] // Go aligns allocations larger than 8 bytes to 8 bytes
	at := (m.next + uint64(align) - 1) &^ (uint64(align) - 1)
	m.next = at + uint64(size) + 4096 // leaves a gap between buffers, so that an overrun is detected
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

// Held returns the number of bytes that are allocated.
func (m *Machine) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// Segments implements driver.Machine. The machine records b; devices can access only those parts of the heap that were
// recorded.
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

// at returns size bytes of memory at a device address. It panics if no driver has provided that memory, since the
// address is then a bug of the driver.
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
