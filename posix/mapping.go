package posix

import (
	"slices"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/packet"
)

// Shared mappings of files (mmap(2)). The content of a mapped file lies in one range of memory
// (fs.Mappable), and each mapping is a part of that range. Two mappings of the same bytes therefore
// have the same address. So access rights are the file's, whatever protection a mapping
// requests, and mprotect and madvise have no effect on this memory.

// mapped is the object that is mapped: an fs.Mappable, or the ring of a packet socket.
type mapped interface {
	Map(size int64, reserve fs.Reserve) (fs.Memory, error)
	Unmap()
	Close() error
}

// mapping is the result of one mmap(2). munmap(2) may split it into several pieces.
type mapping struct {
	handle mapped // its own, because the program may close the descriptor
	memory fs.Memory
	pieces int
}

// piece is a range of addresses, [start, end), that is still mapped.
type piece struct {
	start, end uint64
	of         *mapping
}

// mappings holds all shared mappings of a process.
type mappings struct {
	mu     sync.Mutex
	pieces []piece
}

// MapShared implements mmap(2) for a shared mapping that MayMap has allowed, and returns its address.
// Errors: EINVAL, ENOMEM, ENODEV for a file without shared mappings.
func (p *Process) MapShared(fd int, length uint64, offset int64, reserve fs.Reserve) (uint64, Errno) {
	if s, ok := p.packetSocketAt(fd); ok {
		r := s.Mapped()
		if r == nil {
			return 0, linux.EINVAL
		}
		return p.mappings.add(r, length, offset, reserve)
	}
	f, errno := p.real(fd, linux.ENODEV)
	if errno != 0 {
		return 0, errno
	}
	handle, err := f.Place().Node.Open(f.Flags())
	if err != nil {
		return 0, file.ToErrno(err)
	}
	m, ok := handle.(fs.Mappable)
	if !ok {
		handle.Close()
		return 0, linux.ENODEV
	}
	return p.mappings.add(m, length, offset, reserve)
}

// add maps length bytes of h at offset and returns the address. It takes over h and closes it on error.
// Errors: EINVAL, ENOMEM.
func (s *mappings) add(h mapped, length uint64, offset int64, reserve fs.Reserve) (uint64, Errno) {
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

// Shares reports whether a range of memory overlaps a shared mapping.
func (p *Process) Shares(addr, length uint64) bool {
	end := addr + wholePages(length)
	s := &p.mappings
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.pieces, func(q piece) bool { return q.start < end && addr < q.end })
}

// UnmapShared implements munmap(2) for memory for which Shares is true. If several mappings have
// exactly this range, one of them is removed.
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

// without returns what remains of a piece after a range has been unmapped.
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

// leave drops a piece of the mapping. The last one unmaps the file.
func (m *mapping) leave() {
	m.pieces--
	if m.pieces == 0 {
		m.handle.Unmap()
		m.handle.Close()
	}
}

// RemapShared implements mremap(2) for memory for which Shares is true. The range must be one whole
// mapping. It can move only if its file has no other mappings. Errors: EFAULT for a part of a mapping,
// ENOMEM, EINVAL.
func (p *Process) RemapShared(addr, old, size uint64, flags int, reserve fs.Reserve) (uint64, Errno) {
	const mayMove = 1 // MREMAP_MAYMOVE
	s := &p.mappings
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
func (m *mapping) move(size int64, reserve fs.Reserve) Errno {
	m.handle.Unmap()
	memory, err := m.handle.Map(size, reserve)
	if err != nil {
		m.handle.Map(0, reserve) // finds the existing memory again
		return file.ToErrno(err)
	}
	m.memory = memory
	return 0
}

func wholePages(n uint64) uint64 { return (n + mapPage - 1) &^ (mapPage - 1) }

// packetSocketAt returns the packet socket of fd, if it is one.
func (p *Process) packetSocketAt(fd int) (*packet.Socket, bool) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, false
	}
	s, ok := o.File.(*packet.Socket)
	return s, ok
}
