package qtest

import (
	"errors"
	"slices"
	"sync"

	"loam/driver"
	"loam/driver/virtio/model"
)

// lowMemory is the end of the memory that firmware and devices of a PC use.
const lowMemory = 1 << 20

// allocator allocates the machine's memory above lowMemory, first fit.
type allocator struct {
	mu       sync.Mutex // guards the field free
	all      []byte     // the machine's memory
	free     []piece    // free pieces, sorted by address; no two are adjacent
	messages messages
}

// piece is a range of the memory.
type piece struct{ start, end uint64 }

func newAllocator(memory []byte) allocator {
	return allocator{all: memory, free: []piece{{lowMemory, uint64(len(memory))}}, messages: messages{all: map[*model.Interrupt]driver.Buffer{}}}
}

var errMemory = errors.New("qtest: the machine has no such memory left")

// Allocate implements driver.Machine.
func (a *allocator) Allocate(size, align int) (driver.Buffer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if size <= 0 || align <= 0 || align&(align-1) != 0 {
		panic("qtest: allocation of no size or alignment")
	}
	for i, p := range a.free {
		start := (p.start + uint64(align) - 1) &^ (uint64(align) - 1)
		end := start + uint64(size)
		if end > p.end {
			continue
		}
		rest := slices.DeleteFunc([]piece{{p.start, start}, {end, p.end}}, func(p piece) bool { return p.start == p.end })
		a.free = slices.Replace(a.free, i, i+1, rest...)
		clear(a.all[start:end])
		return driver.Buffer{Bytes: a.all[start:end:end], Address: start}, nil
	}
	return driver.Buffer{}, errMemory
}

// Free implements driver.Machine. It panics if b is not an allocated buffer.
func (a *allocator) Free(b driver.Buffer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := piece{b.Address, b.Address + uint64(len(b.Bytes))}
	at, _ := slices.BinarySearchFunc(a.free, p, func(x, y piece) int { return int(int64(x.start - y.start)) })
	if at > 0 && a.free[at-1].end > p.start || at < len(a.free) && a.free[at].start < p.end {
		panic("qtest: memory freed twice")
	}
	a.free = slices.Insert(a.free, at, p)
	a.merge()
}

// merge joins adjacent pieces.
func (a *allocator) merge() {
	joined := a.free[:1]
	for _, p := range a.free[1:] {
		if last := &joined[len(joined)-1]; last.end == p.start {
			last.end = p.end
		} else {
			joined = append(joined, p)
		}
	}
	a.free = joined
}

// Held returns the number of bytes that are allocated. It is 0 when all drivers are closed.
func (a *allocator) Held() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := len(a.all) - lowMemory
	for _, p := range a.free {
		held -= int(p.end - p.start)
	}
	return held
}

// Segments implements driver.Machine. It always fails: devices in another process cannot access this process's
// heap.
func (a *allocator) Segments([]byte, []driver.Segment) (int, bool) { return 0, false }

// Physical returns the machine's memory at an address; package boot/acpi uses it to read firmware tables. Below 1 MiB,
// firmware may be mapped over the memory. So Physical reads the memory through QEMU and returns a copy.
func (m *Machine) Physical(address, size uint64) []byte {
	if address > memorySize || size > memorySize-address {
		return nil
	}
	if address >= lowMemory {
		return m.all[address : address+size]
	}
	if b := m.question("read", address, max(size, 16)).bytes; uint64(len(b)) >= size {
		return b[:size]
	}
	return nil // QEMU has exited
}
