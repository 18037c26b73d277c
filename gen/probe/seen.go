package probe

import "sync/atomic"

// seen records which questions have been answered, with one bit per position. Lanes set bits while the scheduler reads
// them in later passes, so the words are atomic. If the scheduler reads a bit before it is set, one probe is repeated,
// which does no harm. The kernel allocates the memory of a word when its first bit is set, so unanswered ranges use no
// memory.
type seen struct {
	words []atomic.Uint64
	count atomic.Uint64
}

func newSeen(size uint64) *seen { return &seen{words: make([]atomic.Uint64, (size+63)/64)} }

// add marks a position. It returns false if the position was already marked.
func (s *seen) add(position uint64) bool {
	bit := uint64(1) << (position % 64)
	if s.words[position/64].Or(bit)&bit != 0 {
		return false
	}
	s.count.Add(1)
	return true
}

// has reports whether a position is marked.
func (s *seen) has(position uint64) bool {
	return s.words[position/64].Load()>>(position%64)&1 != 0
}

// full reports whether the 64 positions starting at position are all marked. position must be a multiple of 64.
func (s *seen) full(position uint64) bool { return s.words[position/64].Load() == ^uint64(0) }

// len returns the number of marked positions.
func (s *seen) len() uint64 { return s.count.Load() }
