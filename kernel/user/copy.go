package user

import "loam/arch/amd64"

// Copies between kernel and user memory. They walk the page tables and access memory through the window, so a bad
// address is an error return, never a fault. The space's lock is held for one page at a time. A page that is
// unmapped meanwhile is freed only after the copy of that page.

// Read copies user memory at va to b. It returns the number of bytes copied, fewer than len(b) if the next byte is
// not mapped. The caller then maps it and continues, or fails with EFAULT.
func (s *Space) Read(va uint64, b []byte) int {
	return s.each(va, b, 0, func(memory, part []byte) { copy(part, memory) })
}

// Write copies b to user memory at va. It returns the number of bytes copied, as Read does; a page that is not
// writable ends the copy.
func (s *Space) Write(va uint64, b []byte) int {
	return s.each(va, b, amd64.PageWrite, func(memory, part []byte) { copy(memory, part) })
}

// each calls do for every page's part of b. It returns the bytes done before the first page that with rejects.
func (s *Space) each(va uint64, b []byte, want uint64, do func(memory, part []byte)) (done int) {
	for done < len(b) {
		at := va + uint64(done)
		n := min(len(b)-done, int(amd64.PageSize-at%amd64.PageSize))
		if !s.with(at, n, want, func(memory []byte) { do(memory, b[done:done+n]) }) {
			break
		}
		done += n
	}
	return done
}

// with calls do with n bytes of user memory that lie in one page. It reports false if they are not mapped with the
// flags in want.
func (s *Space) with(va uint64, n int, want uint64, do func([]byte)) bool {
	if va >= Limit {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	want |= amd64.PagePresent | amd64.PageUser
	entry, size := s.tables.Lookup(va)
	if entry&want != want {
		return false
	}
	do(bytesAt(s.tables.Window+uintptr(amd64.Physical(entry)+va&(size-1)), n))
	return true
}
