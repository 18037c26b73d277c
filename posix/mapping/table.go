// Package mapping implements shared mappings of files for a program that runs in the kernel's own memory (mmap(2)). The content
// of a mapped file lies in one range of memory (fs.Mappable), and each mapping is a part of that range. Two mappings of the same
// bytes therefore have the same address. So access rights are the file's, whatever protection a mapping
// requests, and mprotect and madvise have no effect on this memory.
package mapping

import (
	"slices"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Object is something that can be mapped: an fs.Mappable, or the ring of a packet socket.
type Object interface {
	Map(size int64, reserve fs.Reserve) (fs.Memory, error)
	Unmap()
	Close() error
}

// mapping is the result of one mmap(2). munmap(2) may split it into several pieces.
type mapping struct {
	handle Object // a handle of the mapping itself, because the program may close its descriptor
	memory fs.Memory
	pieces int
}

// piece is a range of addresses, [start, end), that is still mapped.
type piece struct {
	start, end uint64
	of         *mapping
}

// Table holds all shared mappings of a process.
type Table struct {
	mu     sync.Mutex
	pieces []piece
}

// Add maps length bytes of h at offset and returns the address. It takes over h and closes it on error.
// Errors: EINVAL, ENOMEM.
func (s *Table) Add(h Object, length uint64, offset int64, reserve fs.Reserve) (uint64, linux.Errno) {
	length = wholePages(length)
	if length == 0 || int64(length) < 0 || offset+int64(length) < 0 {
		h.Close()
		return 0, linux.EINVAL
	}
	memory, err := h.Map(offset+int64(length), reserve)
	if err != nil {
		h.Close()
		return 0, file.ToErrno(err)
	}
	start := memory.Address() + uint64(offset)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = append(s.pieces, piece{start, start + length, &mapping{h, memory, 1}})
	return start, 0
}

// Overlaps reports whether a range of memory overlaps a shared mapping.
func (s *Table) Overlaps(addr, length uint64) bool {
	end := addr + wholePages(length)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pieces, func(q piece) bool { return q.start < end && addr < q.end })
}

// Unmap implements munmap(2) for memory for which Overlaps is true. If several mappings have
// exactly this range, one of them is removed.
func (s *Table) Unmap(addr, length uint64) {
	end := addr + wholePages(length)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.pieces, func(q piece) bool { return q.start == addr && q.end == end }); i >= 0 {
		s.pieces[i].of.leave()
		s.pieces = slices.Delete(s.pieces, i, i+1)
		return
	}
	var left []piece
	for _, q := range s.pieces {
		left = append(left, q.without(addr, end)...)
	}
	s.pieces = left
}

// without returns the parts of a piece that remain after the range from start to end has been unmapped.
func (q piece) without(start, end uint64) []piece {
	if end <= q.start || q.end <= start {
		return []piece{q}
	}
	var left []piece
	if q.start < start {
		left = append(left, piece{q.start, start, q.of})
	}
	if end < q.end {
		left = append(left, piece{end, q.end, q.of})
	}
	q.of.pieces += len(left)
	q.of.leave()
	return left
}

// leave drops a piece of the mapping. After its last piece, the file is unmapped.
func (m *mapping) leave() {
	m.pieces--
	if m.pieces == 0 {
		m.handle.Unmap()
		m.handle.Close()
	}
}

// Remap implements mremap(2) for memory for which Overlaps is true. The range must be one whole
// mapping. It can move only if its file has no other mappings. Errors: EFAULT for a part of a mapping,
// ENOMEM, EINVAL.
func (s *Table) Remap(addr, old, size uint64, flags int, reserve fs.Reserve) (uint64, linux.Errno) {
	const mayMove = 1 // MREMAP_MAYMOVE
	s.mu.Lock()
	defer s.mu.Unlock()
	old, size = wholePages(old), wholePages(size)
	i := slices.IndexFunc(s.pieces, func(q piece) bool { return q.start == addr && q.end == addr+old })
	switch {
	case size == 0 || int64(size) < 0 || flags&^mayMove != 0:
		return 0, linux.EINVAL
	case i < 0 || s.pieces[i].of.pieces != 1:
		return 0, linux.EFAULT
	}
	q := &s.pieces[i]
	m := q.of
	offset := q.start - m.memory.Address()
	if offset+size > uint64(m.memory.Size()) {
		if flags&mayMove == 0 {
			return 0, linux.ENOMEM
		}
		if errno := m.move(int64(offset+size), reserve); errno != 0 {
			return 0, errno
		}
	}
	q.start = m.memory.Address() + offset
	q.end = q.start + size
	return q.start, 0
}

// move moves the content to a larger range of memory. On error, nothing has changed.
func (m *mapping) move(size int64, reserve fs.Reserve) linux.Errno {
	m.handle.Unmap()
	memory, err := m.handle.Map(size, reserve)
	if err != nil {
		m.handle.Map(0, reserve) // Map returns the memory that already exists
		return file.ToErrno(err)
	}
	m.memory = memory
	return 0
}

// Page is the unit of mappings and of their offsets in files, in bytes.
const Page = 4096

func wholePages(n uint64) uint64 { return (n + Page - 1) &^ (Page - 1) }
