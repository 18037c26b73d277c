package measure

// windowSize is the number of the latest sequence numbers for which a window records whether they have arrived. With
// this record, duplicates and late frames can be distinguished.
const windowSize = 1 << 16

// window records which of the latest windowSize sequence numbers have arrived. The bits for numbers from next upwards
// are zero.
type window struct {
	bits [windowSize / 64]uint64
	next uint64 // one more than the highest sequence number that has arrived
}

// forward moves the window up so that it includes s, which must not be below next.
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

// reaches reports whether s, which is below next, is still in the window.
func (w *window) reaches(s uint64) bool { return w.next-s <= windowSize }

// set records s and reports whether it was recorded before.
func (w *window) set(s uint64) (before bool) {
	word, bit := &w.bits[s%windowSize/64], uint64(1)<<(s%64)
	before = *word&bit != 0
	*word |= bit
	return before
}
