package measure

// windowSize is how many of the latest sequence numbers are remembered, to tell
// a duplicate from a frame that is late.
const windowSize = 1 << 16

// window remembers which of the latest windowSize sequence numbers arrived. The
// bits of numbers in front of next are zero.
type window struct {
	bits [windowSize / 64]uint64
	next uint64 // above all that arrived
}

// forward makes place for the numbers up to s, which is not below next.
func (w *window) forward(s uint64) {
	if s-w.next >= windowSize {
		w.bits = [windowSize / 64]uint64{}
	} else {
		for n := w.next; n <= s; n++ {
			w.bits[n%windowSize/64] &^= 1 << (n % 64)
		}
	}
	w.next = s + 1
}

// reaches reports whether s, below next, is still remembered.
func (w *window) reaches(s uint64) bool { return w.next-s <= windowSize }

// set remembers s, and reports whether it was remembered already.
func (w *window) set(s uint64) (before bool) {
	word, bit := &w.bits[s%windowSize/64], uint64(1)<<(s%64)
	before = *word&bit != 0
	*word |= bit
	return before
}
