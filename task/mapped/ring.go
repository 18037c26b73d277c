package mapped

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/file"
	"loam/posix/packet"
)

// ring is the memory of a packet socket's receive ring. All pages are allocated at the start, because the kernel writes frames
// to them.
type ring struct {
	*mem.Shared
	memory mem.Memory
}

// newRing returns zeroed memory for a ring. Errors: ENOMEM.
func newRing(m mem.Memory, r *packet.Ring, size int64, label mem.Label) (*ring, error) {
	pages := uint64(size) >> mem.PageShift
	s := mem.NewSegment(m, pages, func() mem.Label { return label }, r.Count)
	for i := range pages {
		if _, _, supply := s.Page(i, true); supply != mem.Supplied {
			s.Drop()
			return nil, linux.ENOMEM
		}
	}
	return &ring{Shared: s, memory: m}, nil
}

// Content implements packet.Shared.
func (r *ring) Content(page int) []byte { return r.memory.Bytes(r.Peek(uint64(page))) }

// Punch implements mem.Object. It fails, because the kernel writes to the pages.
func (r *ring) Punch(uint64, uint64) error { return linux.ENODEV }

// requestRing sets the object of q, a request of mmap(2), to the memory of a ring. The caller maps it, and then calls release.
// Errors: EINVAL, ENOMEM, ENODEV.
func (s *Files) requestRing(q *mem.Request, r *packet.Ring, label mem.Label) (release func(), errno linux.Errno) {
	memory, err := r.Share(int64(q.Length+mem.PageSize-1)&^(mem.PageSize-1), func(size int64) (packet.Shared, error) {
		return newRing(s.memory, r, size, label)
	})
	if err != nil {
		return nil, file.ToErrno(err)
	}
	q.Object = memory.(*ring)
	return func() { r.Count(-1) }, 0
}
