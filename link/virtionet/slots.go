package virtionet

import "loam/driver"

// slots is memory that a card reaches, in pieces of the same size.
type slots struct {
	buffer driver.Buffer
	size   int
	one    [1]driver.Segment // what segment returns
}

func newSlots(m driver.Machine, n, size int) (slots, error) {
	const line = 64 // pieces begin at a line of the cache
	size = (size + line - 1) &^ (line - 1)
	b, err := m.Allocate(n*size, line)
	return slots{buffer: b, size: size}, err
}

// bytes is piece i.
func (s *slots) bytes(i uint16) []byte { return s.buffer.Bytes[int(i)*s.size:][:s.size] }

// segment is the first n bytes of piece i, until the next call.
func (s *slots) segment(i uint16, n int) []driver.Segment {
	s.one[0] = driver.Segment{Address: s.buffer.Address + uint64(int(i)*s.size), Size: n}
	return s.one[:]
}

// free gives the memory back, if there is any.
func (s *slots) free(m driver.Machine) {
	if s.buffer.Bytes != nil {
		m.Free(s.buffer)
		s.buffer = driver.Buffer{}
	}
}
