package user

import (
	"encoding/binary"
	"sync/atomic"

	"loam/arch/amd64"
)

// Copies between kernel memory and user memory. A goroutine usually copies memory of its own process while the CPU still uses
// the address space of that process. Then copyDirect copies through the mapping of the process. An interrupt ends the copy, also
// the interrupt of a CPU that unmaps the page. The copy is then repeated by walking the page tables, so bytes may be stored twice.
// A word of 4 or 8 bytes that does not cross a page boundary is stored once: no interrupt occurs while copyDirect stores it.
//
// All other copies walk the page tables and access memory through the window (the mapping of physical memory). The space's
// lock is held while one page is copied. If that page is unmapped meanwhile, its memory is freed only after the copy.

// isDirect reports whether copyDirect may copy n bytes at va. A long copy would often be interrupted. The copy ends below the
// upper half, because the page at Limit is in the lower half, where it is never mapped.
func isDirect(va uint64, n int) bool { return va < Limit && n <= amd64.PageSize }

// Read copies user memory at va to b. It returns the number of bytes copied. If the number is less than len(b), the
// next byte is not mapped: the caller maps it and continues, or fails with EFAULT.
func (s *Space) Read(va uint64, b []byte) int {
	if s.readDirect(va, b) {
		return len(b)
	}
	done := 0
	for done < len(b) {
		s.mu.RLock()
		memory := s.memory(va+uint64(done), len(b)-done, amd64.PagePresent|amd64.PageUser)
		done += copy(b[done:], memory)
		s.mu.RUnlock()
		if memory == nil {
			break
		}
	}
	return done
}

// Write copies b to user memory at va. It returns the number of bytes copied. It stops, as Read does, at a page that is
// not mapped, and also at a page that is not writable.
func (s *Space) Write(va uint64, b []byte) int {
	if s.writeDirect(va, b) {
		return len(b)
	}
	done := 0
	for done < len(b) {
		s.mu.RLock()
		memory := s.memory(va+uint64(done), len(b)-done, amd64.PagePresent|amd64.PageUser|amd64.PageWrite)
		done += copy(memory, b[done:])
		s.mu.RUnlock()
		if memory == nil {
			break
		}
	}
	return done
}

// memory returns up to n bytes of user memory at va, all in one page. It returns nil if the page is not mapped with
// the flags in want. The slice is valid while the caller holds the lock of the Space.
func (s *Space) memory(va uint64, n int, want uint64) []byte {
	if va >= Limit {
		return nil
	}
	entry, size := s.tables.Lookup(va)
	if entry&want != want {
		return nil
	}
	n = min(n, int(amd64.PageSize-va%amd64.PageSize))
	return bytesAt(s.tables.Window+uintptr(amd64.Physical(entry)+va&(size-1)), n)
}

// Load returns the 32-bit word at va, which must be aligned to 4 bytes. It returns false if the page is not mapped.
func (s *Space) Load(va uint64) (value uint32, ok bool) {
	const size = 4
	var word [size]byte
	if s.readDirect(va, word[:]) {
		return binary.NativeEndian.Uint32(word[:]), true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.memory(va, size, amd64.PagePresent|amd64.PageUser)
	if b == nil {
		return 0, false
	}
	return atomic.LoadUint32(wordAt(b)), true
}

// CompareAndSwap stores value in the 32-bit word at va if the word is old. va must be aligned to 4 bytes. It returns
// the previous content, and false if the page is not mapped or not writable.
func (s *Space) CompareAndSwap(va uint64, old, value uint32) (found uint32, ok bool) {
	const size = 4
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.memory(va, size, amd64.PagePresent|amd64.PageUser|amd64.PageWrite)
	if b == nil {
		return 0, false
	}
	word := wordAt(b)
	for {
		if found = atomic.LoadUint32(word); found != old || atomic.CompareAndSwapUint32(word, old, value) {
			return found, true
		}
	}
}
