// Package memtest provides the parts that tests of user memory need on a host: physical pages, which are counted and
// filled with a pattern when free, and page tables, which are a Go map.
package memtest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"loam/mem"
)

// Poison is the value of every byte of a free page, and of a page just after its allocation.
const Poison = 0xa5

var poison = bytes.Repeat([]byte{Poison}, mem.PageSize)

// Memory implements mem.Memory with a fixed number of pages. It panics if a page is freed twice, or freed while it has
// references.
type Memory struct {
	bytes []byte
	refs  []atomic.Int32
	dirty []bool // by page: true if the page was allocated before, so that it holds Poison while it is free; guarded by mu

	mu    sync.Mutex
	free  []mem.Page // free pages of blocks that are not wholly free
	whole []mem.Page // the first pages of free blocks
	count []int      // number of pages in free, by block
	used  int
	// Poisoned makes Free fill pages with Poison, and Allocate check that they still hold it.
	Poisoned bool
}

// NewMemory returns memory with the given number of blocks of 2 MiB. The first block contains the page of zeros.
func NewMemory(blocks int) *Memory {
	m := &Memory{
		bytes: make([]byte, blocks*mem.BlockSize), refs: make([]atomic.Int32, blocks*mem.BlockPages),
		dirty: make([]bool, blocks*mem.BlockPages), count: make([]int, blocks), Poisoned: true,
	}
	for p := mem.BlockPages - 1; p > 1; p-- { // page 0 means none, page 1 is zeros
		m.free = append(m.free, mem.Page(p))
	}
	for b := blocks - 1; b > 0; b-- {
		m.whole = append(m.whole, mem.Page(b*mem.BlockPages))
	}
	return m
}

// Allocate implements mem.Memory.
func (m *Memory) Allocate() mem.Page {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) == 0 {
		if len(m.whole) == 0 {
			return 0
		}
		first := m.whole[len(m.whole)-1]
		m.whole = m.whole[:len(m.whole)-1]
		for i := mem.Page(mem.BlockPages); i > 0; i-- {
			m.free = append(m.free, first+i-1)
		}
		m.count[first/mem.BlockPages] = mem.BlockPages
	}
	p := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	m.count[p/mem.BlockPages]--
	m.take(p)
	return p
}

// AllocateBlock implements mem.Memory.
func (m *Memory) AllocateBlock() mem.Page {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.whole) == 0 {
		return 0
	}
	first := m.whole[len(m.whole)-1]
	m.whole = m.whole[:len(m.whole)-1]
	for i := range mem.Page(mem.BlockPages) {
		m.take(first + i)
	}
	return first
}

func (m *Memory) take(p mem.Page) {
	if m.Poisoned && m.dirty[p] && !bytes.Equal(m.Bytes(p), poison) {
		panic(fmt.Sprintf("memtest: page %d was written after it was freed", p))
	}
	if m.Poisoned && !m.dirty[p] {
		copy(m.Bytes(p), poison)
	}
	m.dirty[p] = true
	if m.refs[p].Swap(1) != 0 {
		panic("memtest: free page has references")
	}
	m.used++
}

// Free implements mem.Memory. A block is whole again when all its pages are free.
func (m *Memory) Free(p mem.Page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs[p].Load() != 0 {
		panic("memtest: page is freed while it has references")
	}
	if m.Poisoned {
		copy(m.Bytes(p), poison)
	}
	m.free = append(m.free, p)
	m.used--
	block := p / mem.BlockPages
	if m.count[block]++; m.count[block] == mem.BlockPages {
		m.free = slices.DeleteFunc(m.free, func(p mem.Page) bool { return p/mem.BlockPages == block })
		m.whole = append(m.whole, block*mem.BlockPages)
		m.count[block] = 0
	}
}

// FreeBlock implements mem.Memory.
func (m *Memory) FreeBlock(first mem.Page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := first; p < first+mem.BlockPages; p++ {
		if m.refs[p].Load() != 0 {
			panic("memtest: block is freed while it has references")
		}
		if m.Poisoned {
			copy(m.Bytes(p), poison)
		}
	}
	m.whole = append(m.whole, first)
	m.used -= mem.BlockPages
}

// Bytes implements mem.Memory.
func (m *Memory) Bytes(p mem.Page) []byte {
	return m.bytes[int(p)*mem.PageSize:][:mem.PageSize:mem.PageSize]
}

// References implements mem.Memory.
func (m *Memory) References(p mem.Page) *atomic.Int32 { return &m.refs[p] }

// Zero implements mem.Memory.
func (m *Memory) Zero() mem.Page { return 1 }

// Used returns how many pages are allocated.
func (m *Memory) Used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
