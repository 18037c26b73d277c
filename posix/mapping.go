package posix

import (
	"slices"
	"sync"
	"syscall"

	"loam/fs"
)

// Shared mappings of files, mmap(2). The content of a file that is mapped lies in one
// piece of memory (fs.Mappable), of which each mapping is a part: two that show the same
// begin at the same address. So rights are the file's, whatever a mapping asks for, and
// what the program does to this memory by mprotect and madvise is not done.

// mapped is what mappings are of: an fs.Mappable, or a packet socket's ring.
type mapped interface {
	Map(size int64, reserve fs.Reserve) (fs.Memory, error)
	Unmap()
	Close() error
}

// mapping is one mmap(2), of which munmap(2) may leave pieces.
type mapping struct {
	handle mapped // its own: the program may close what it mapped
	memory fs.Memory
	pieces int
}

// piece is what is still mapped, from an address to another.
type piece struct {
	start, end uint64
	of         *mapping
}

// mappings are all that a process has.
type mappings struct {
	mu     sync.Mutex
	pieces []piece
}

// MapShared is mmap(2) of a shared mapping that MayMap has allowed, and returns its address.
// Errors: ENODEV for a file that has no such mappings, ENOMEM.
func (p *Process) MapShared(fd int, length uint64, offset int64, reserve fs.Reserve) (uint64, Errno) {
	if s, ok := p.packetSocketAt(fd); ok {
		return s.mapRing(&p.mappings, length, offset, reserve)
	}
	f, errno := p.real(fd, syscall.ENODEV)
	if errno != 0 {
		return 0, errno
	}
	handle, err := f.Place().Node.Open(f.Flags())
	if err != nil {
		return 0, toErrno(err)
	}
	m, ok := handle.(fs.Mappable)
	if !ok {
		handle.Close()
		return 0, syscall.ENODEV
	}
	return p.mappings.add(m, length, offset, reserve)
}

func (s *mappings) add(h mapped, length uint64, offset int64, reserve fs.Reserve) (uint64, Errno) {
	length = wholePages(length)
	if length == 0 || int64(length) < 0 || offset+int64(length) < 0 {
		h.Close()
		return 0, syscall.EINVAL
	}
	memory, err := h.Map(offset+int64(length), reserve)
	if err != nil {
		h.Close()
		return 0, toErrno(err)
	}
	start := memory.Address() + uint64(offset)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces = append(s.pieces, piece{start, start + length, &mapping{h, memory, 1}})
	return start, 0
}

// Shares reports whether shared mappings of files are among the memory at an address.
func (p *Process) Shares(addr, length uint64) bool {
	end := addr + wholePages(length)
	s := &p.mappings
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pieces, func(q piece) bool { return q.start < end && addr < q.end })
}

// UnmapShared is munmap(2) of memory that Shares. Where several mappings are the same, one
// of them goes.
func (p *Process) UnmapShared(addr, length uint64) {
	end := addr + wholePages(length)
	s := &p.mappings
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

// without is what is left of a piece.
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

// leave is for a piece that is no more.
func (m *mapping) leave() {
	m.pieces--
	if m.pieces == 0 {
		m.handle.Unmap()
		m.handle.Close()
	}
}

// RemapShared is mremap(2) of memory that Shares, all of it one mapping. Only one without
// others of its file beside it is moved. Errors: EFAULT for a part of a mapping, ENOMEM,
// EINVAL.
func (p *Process) RemapShared(addr, old, size uint64, flags int, reserve fs.Reserve) (uint64, Errno) {
	const mayMove = 1 // MREMAP_MAYMOVE
	s := &p.mappings
	s.mu.Lock()
	defer s.mu.Unlock()
	old, size = wholePages(old), wholePages(size)
	i := slices.IndexFunc(s.pieces, func(q piece) bool { return q.start == addr && q.end == addr+old })
	switch {
	case size == 0 || int64(size) < 0 || flags&^mayMove != 0:
		return 0, syscall.EINVAL
	case i < 0 || s.pieces[i].of.pieces != 1:
		return 0, syscall.EFAULT
	}
	q := &s.pieces[i]
	m := q.of
	offset := q.start - m.memory.Address()
	if offset+size > uint64(m.memory.Size()) {
		if flags&mayMove == 0 {
			return 0, syscall.ENOMEM
		}
		if errno := m.move(int64(offset+size), reserve); errno != 0 {
			return 0, errno
		}
	}
	q.start = m.memory.Address() + offset
	q.end = q.start + size
	return q.start, 0
}

// move puts the content into larger memory. If that fails all is as it was.
func (m *mapping) move(size int64, reserve fs.Reserve) Errno {
	m.handle.Unmap()
	memory, err := m.handle.Map(size, reserve)
	if err != nil {
		m.handle.Map(0, reserve) // which finds the memory that there is
		return toErrno(err)
	}
	m.memory = memory
	return 0
}

func wholePages(n uint64) uint64 { return (n + mapPage - 1) &^ (mapPage - 1) }
