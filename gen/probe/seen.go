package probe

import "sync/atomic"

// seen is who has answered: a bit for each position. Lanes set bits, and the
// scheduler reads them when it goes round again, so words are atomic; a bit that is
// read too early costs one probe more. The memory of a word is touched when its
// first bit is set: unanswered space costs nothing.
type seen struct {
	words []atomic.Uint64
	count atomic.Uint64
}

func newSeen(size uint64) *seen { return &seen{words: make([]atomic.Uint64, (size+63)/64)} }

// add marks a position and reports whether it was not marked before.
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

// full reports whether all of 64 positions, beginning at a multiple of 64, are
// marked.
func (s *seen) full(position uint64) bool { return s.words[position/64].Load() == ^uint64(0) }

// len is how many are marked.
func (s *seen) len() uint64 { return s.count.Load() }
