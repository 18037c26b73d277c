package mem

import (
	"sync/atomic"

	"loam/abi/linux"
)

// Policy decides which regions may use blocks, the big pages of 2 MiB. Its names are those of
// /sys/kernel/mm/transparent_hugepage/enabled.
type Policy uint32

// Values of Policy. With all of them, MADV_NOHUGEPAGE and PR_SET_THP_DISABLE forbid blocks.
const (
	Advised  Policy = iota // regions with MADV_HUGEPAGE
	Everyone               // all private anonymous regions
	Nobody                 // no region
)

// Blocks is the policy and the statistics of blocks of a system. The zero value has the policy Advised. Its methods are
// safe for concurrent use.
type Blocks struct {
	policy atomic.Uint32
	count  atomic.Int64
	faults, fallbacks, collapsed,
	split atomic.Uint64
}

// Policy returns the policy.
func (b *Blocks) Policy() Policy { return Policy(b.policy.Load()) }

// SetPolicy changes the policy. Existing blocks stay.
func (b *Blocks) SetPolicy(p Policy) { b.policy.Store(uint32(p)) }

// BlockUse holds numbers of blocks.
type BlockUse struct {
	Now       uint64 // blocks in use; a block that processes share after a fork counts once
	Faults    uint64 // page faults that were resolved by a block
	Fallbacks uint64 // page faults that were resolved by a single page, because no block was free
	Collapsed uint64 // blocks that MADV_COLLAPSE has made
	Split     uint64 // blocks whose pages became single pages
}

// Use returns the numbers of blocks.
func (b *Blocks) Use() BlockUse {
	return BlockUse{uint64(max(b.count.Load(), 0)), b.faults.Load(), b.fallbacks.Load(), b.collapsed.Load(), b.split.Load()}
}

// SetSmallPages forbids or allows blocks in this map (PR_SET_THP_DISABLE). Existing blocks stay.
func (m *Map) SetSmallPages(small bool) {
	m.lock()
	defer m.unlock()
	m.small = small
}

// eligible reports whether a page fault may use blocks in a region.
func (m *Map) eligible(r *Region) bool {
	switch p := m.blocks.Policy(); {
	case !m.collapsible(r) || p == Nobody:
		return false
	case p == Everyone:
		return true
	}
	return r.has(HugePages)
}

// collapsible reports whether a region may contain blocks, whatever the policy.
func (m *Map) collapsible(r *Region) bool {
	return r.object == nil && !m.small && !r.has(NoHugePages|SharedRegion|Special)
}

// blockDown rounds an address down to a block boundary, and blockUp rounds it up.
func blockDown(a uint64) uint64 { return a &^ (BlockSize - 1) }
func blockUp(a uint64) uint64   { return blockDown(a + BlockSize - 1) }

// hasBlock reports whether the region contains the whole block around an address.
func (r *Region) hasBlock(addr uint64) bool {
	start := blockDown(addr)
	return r.start <= start && start+BlockSize <= r.end
}

// mayHaveBlock reports whether a store at addr can be resolved by a whole block of 2 MiB: the region contains the
// block, may use blocks, and nothing was stored in the block yet.
func (m *Map) mayHaveBlock(r *Region, addr uint64) bool {
	if !r.hasBlock(addr) || !m.eligible(r) {
		return false
	}
	l := m.private.leaf(addr >> PageShift)
	return l == nil || l.count == l.zeros
}

// block makes a block of zeros the private pages around addr. It returns false if no block is free.
func (m *Map) block(r *Region, addr uint64) bool {
	first := m.memory.AllocateBlock()
	if first == 0 {
		m.blocks.fallbacks.Add(1)
		return false
	}
	for i := range Page(BlockPages) {
		clear(m.memory.Bytes(first + i))
	}
	m.private.setBlock(addr>>PageShift, first, m.blocks, m.memory)
	m.blocks.faults.Add(1)
	r.touched = true
	return true
}

// collapse implements MADV_COLLAPSE: it moves the pages of each whole block in the range to contiguous physical pages.
// It stops at the first region that may not have blocks (EINVAL), and if no block is free (ENOMEM). Blocks without pages
// of their own (EINVAL) and blocks that are shared after a fork (EAGAIN) are skipped.
func (m *Map) collapse(addr, end uint64) (failure error) {
	for addr < end {
		next, err := m.collapseNext(addr, end)
		if err != nil {
			failure = err
		}
		addr = next
	}
	return failure
}

// collapseNext collapses the first block of a range, and returns the address at which to continue.
func (m *Map) collapseNext(addr, end uint64) (next uint64, err error) {
	m.lock()
	defer m.unlock()
	r := m.regions.find(addr)
	switch {
	case r == nil || r.start >= end:
		return end, linux.ENOMEM
	case r.start > addr:
		return r.start, linux.ENOMEM
	case !m.collapsible(r) || blockUp(r.start)+BlockSize > r.end:
		return end, linux.EINVAL
	}
	start, to := blockUp(addr), min(r.end, end)
	switch {
	case start > blockDown(to):
		return to, linux.EINVAL
	case start == blockDown(to):
		return to, nil
	}
	err = m.gather(start)
	if err == linux.ENOMEM {
		return end, err
	}
	return start + BlockSize, err
}

// gather replaces the pages of a block by a copy in contiguous physical pages. Before it copies, it withdraws their
// translations, so that no thread can store to the old pages.
func (m *Map) gather(start uint64) error {
	l := m.private.leaf(start >> PageShift)
	switch {
	case l == nil || l.count == l.zeros:
		return linux.EINVAL
	case l.big != nil:
		return nil
	case l.refs.Load() != 1:
		return linux.EAGAIN
	}
	for _, p := range l.pages {
		if p != 0 && p != m.memory.Zero() && m.memory.References(p).Load() != 1 { // it has another owner, or is pinned
			return linux.EAGAIN
		}
	}
	first := m.memory.AllocateBlock()
	if first == 0 {
		return linux.ENOMEM
	}
	m.batch.unmap(start, start+BlockSize)
	m.apply()
	for i := range BlockPages {
		to := m.memory.Bytes(first + Page(i))
		if p := l.get(i); p == 0 || p == m.memory.Zero() {
			clear(to)
		} else {
			copy(to, m.memory.Bytes(p))
		}
	}
	m.drop(start, start+BlockSize)
	m.private.setBlock(start>>PageShift, first, m.blocks, m.memory)
	m.blocks.collapsed.Add(1)
	return nil
}

// isBlock reports whether the list begins with the pages of a block, in order.
func isBlock(pages []Page) bool {
	if len(pages) < BlockPages || pages[0]%BlockPages != 0 || pages[BlockPages-1] != pages[0]+BlockPages-1 {
		return false
	}
	for i, p := range pages[:BlockPages] {
		if p != pages[0]+Page(i) {
			return false
		}
	}
	return true
}

// releaseBlock drops a reference to each page of a block. If each reference was the last one, it frees the block as a
// whole. No one else can add a reference to a page whose only reference the caller has.
func releaseBlock(m Memory, first Page) {
	for i := range Page(BlockPages) {
		if m.References(first+i).Load() != 1 {
			for i := range Page(BlockPages) {
				Release(m, first+i)
			}
			return
		}
	}
	for i := range Page(BlockPages) {
		m.References(first + i).Store(0)
	}
	m.FreeBlock(first)
}
