package virtionet

import "loam/driver"

// slots is memory that a card can reach, in pieces of equal size.
type slots struct {
	buffer driver.Buffer
	size   int
	one    [1]driver.Segment // result of segment
}

func newSlots(m driver.Machine, n, size int) (slots, error) {
	const line = 64 // pieces are aligned to cache lines
	size = (size + line - 1) &^ (line - 1)
	b, err := m.Allocate(n*size, line)
	return slots{buffer: b, size: size}, err
}

// bytes returns piece i.
func (s *slots) bytes(i uint16) []byte { return s.buffer.Bytes[int(i)*s.size:][:s.size] }

// segment returns the first n bytes of piece i as a segment. The result is valid until the next
// call.
func (s *slots) segment(i uint16, n int) []driver.Segment {
	s.one[0] = driver.Segment{Address: s.buffer.Address + uint64(int(i)*s.size), Size: n}
	return s.one[:]
}

// free frees the memory, if there is any.
func (s *slots) free(m driver.Machine) {
	if s.buffer.Bytes != nil {
		m.Free(s.buffer)
		s.buffer = driver.Buffer{}
	}
}
