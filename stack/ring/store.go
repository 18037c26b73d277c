package ring

// store is the sparse memory under both kinds of queue: the bytes of a stream in
// a window that only moves forward. Callers hold the queue's lock.
//
// Chunk number k covers the offsets [k*chunkSize, (k+1)*chunkSize). Since the
// numbers of live chunks lie in [lo, hi) and the table has at least hi-lo slots,
// a power of two of them, slot k mod len is free of clashes and nothing ever
// moves except when the table grows.
type store struct {
	lo, hi uint64   // chunk numbers
	slot   []*chunk // inline[:] or large.slot; nil before first use
	large  *table
	inline [inlineSlots]*chunk
}

// inlineSlots is how much of the table lives in the struct: 32 KiB of stream.
const inlineSlots = 8

// stride is how many chunks one turn of a copy takes: 64 KiB, wherever it
// begins.
const stride = 65536/chunkSize + 1

// spans is a run of chunks picked under the lock, to be copied from or to
// without it.
type spans struct {
	skip  int // bytes of the first chunk that come before the run
	n     int // chunks in use
	chunk [stride]*chunk
}

// reserve provides the chunks for the offsets [from, to), from at or behind the
// last drop.
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

// grow makes the table at least hi-lo slots long.
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

// pick fills sp with the chunks that hold [from, to) and returns how many bytes
// of that they cover, which is less if there are more than stride of them. All
// of them have been reserved.
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

// drop frees the chunks that lie wholly in front of off. off may be behind hi.
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

// clear frees everything: drained, or given up. The next byte comes at off or
// behind it.
func (s *store) clear(off uint64) {
	s.drop(s.hi * chunkSize)
	s.lo, s.hi = off/chunkSize, off/chunkSize
	if s.large != nil {
		s.large.free()
		s.large, s.slot = nil, s.inline[:]
	}
}

// copyIn fills the run from p, which is not longer.
func (sp *spans) copyIn(p []byte) {
	skip := sp.skip
	for _, c := range sp.chunk[:sp.n] {
		p = p[copy(c[skip:], p):]
		skip = 0
	}
}

// copyOut fills p, which is not longer, from the run.
func (sp *spans) copyOut(p []byte) {
	skip := sp.skip
	for _, c := range sp.chunk[:sp.n] {
		p = p[copy(p, c[skip:]):]
		skip = 0
	}
}
