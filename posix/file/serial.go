package file

import "sync"

// Serial allocates unique numbers, starting at 1.
type Serial struct {
	mu sync.Mutex
	n  uint32
}

// Next returns the next number.
func (s *Serial) Next() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}
