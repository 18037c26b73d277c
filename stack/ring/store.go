package ring

// store is the sparse memory of both kinds of queue. It holds the bytes of a stream in a window that only
// moves forward. Callers hold the queue's lock.
//
// Chunk k covers the offsets [k*chunkSize, (k+1)*chunkSize). The numbers of live chunks lie in [lo, hi), and
// the number of slots is a power of two, at least hi-lo. Slot k mod len is therefore unique, and chunks move
// only when the table grows.
type store struct {
	lo, hi uint64   // first chunk number, and the number after the last chunk
	slot   []*chunk // the chunk table: inline[:] or large.slot; nil before the first use
	large  *table
	inline [inlineSlots]*chunk
}

// inlineSlots is the number of slots inside the struct, enough for 32 KiB of the stream.
const inlineSlots = 8

// stride is the maximum number of chunks in one copy, enough for 64 KiB at any offset.
const stride = 65536/chunkSize + 1

// spans is a run of chunks selected under the lock, to be copied without it.
type spans struct {
	skip  int // number of bytes of the first chunk that precede the run
	n     int // number of chunks in the run
	chunk [stride]*chunk
}

// reserve allocates the chunks for the offsets in [from, to). The offset from must not be
// below the offset of the last drop.
func (s *store) reserve(from, to uint64) {
	first, last := from/chunkSize, (to-1)/chunkSize
	s.hi = max(s.hi, last+1)
	if s.hi-s.lo > uint64(len(s.slot)) {
		s.grow()
	}
	mask := uint64(len(s.slot) - 1)
	for k := first; k <= last; k++ {
		if s.slot[k&mask] == nil {
			s.slot[k&mask] = newChunk()
		}
	}
}

// grow enlarges the chunk table to at least hi-lo slots.
func (s *store) grow() {
	if s.slot == nil {
		s.slot = s.inline[:]
	}
	n := uint64(len(s.slot))
	for n < s.hi-s.lo {
		n *= 2
	}
	if n == uint64(len(s.slot)) {
		return
	}
	t := newTable(int(n))
	oldMask := uint64(len(s.slot) - 1)
	for k := s.lo; k < s.lo+uint64(len(s.slot)); k++ {
		t.slot[k&(n-1)], s.slot[k&oldMask] = s.slot[k&oldMask], nil
	}
	if s.large != nil {
		s.large.free()
	}
	s.large, s.slot = t, t.slot
}

// pick stores in sp the chunks that hold the bytes [from, to). It returns the number of bytes in them, which is less
// than to-from if more than stride chunks would be needed. All chunks must have been reserved.
func (s *store) pick(sp *spans, from, to uint64) int {
	mask := uint64(len(s.slot) - 1)
	sp.skip, sp.n = int(from%chunkSize), 0
	k := from / chunkSize
	for ; sp.n < stride && k*chunkSize < to; k++ {
		sp.chunk[sp.n] = s.slot[k&mask]
		sp.n++
	}
	return int(min(to, k*chunkSize) - from)
}

// drop frees the chunks whose bytes are all before the offset off. That offset may be
// beyond the last chunk.
func (s *store) drop(off uint64) {
	lo := off / chunkSize
	mask := uint64(len(s.slot) - 1)
	for k := s.lo; k < min(lo, s.hi); k++ {
		if c := s.slot[k&mask]; c != nil {
			c.free()
			s.slot[k&mask] = nil
		}
	}
	s.lo, s.hi = lo, max(s.hi, lo)
}

// clear frees all memory when the queue is empty or abandoned. The next byte that is
// stored has an offset of at least off.
func (s *store) clear(off uint64) {
	s.drop(s.hi * chunkSize)
	s.lo, s.hi = off/chunkSize, off/chunkSize
	if s.large != nil {
		s.large.free()
		s.large, s.slot = nil, s.inline[:]
	}
}

// copyIn copies p to the run. p must not be longer than the run.
func (sp *spans) copyIn(p []byte) {
	skip := sp.skip
	for _, c := range sp.chunk[:sp.n] {
		p = p[copy(c[skip:], p):]
		skip = 0
	}
}

// copyOut copies from the run to p. p must not be longer than the run.
func (sp *spans) copyOut(p []byte) {
	skip := sp.skip
	for _, c := range sp.chunk[:sp.n] {
		p = p[copy(p, c[skip:]):]
		skip = 0
	}
}
