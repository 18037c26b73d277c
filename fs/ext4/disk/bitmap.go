package disk

import "math/bits"

// Bitmaps of blocks and inodes: bit i is bit i%8 of byte i/8, 1 means in use
// ("Block and inode Bitmaps").

// Bit reports whether a bit is set.
func Bit(b []byte, i uint32) bool { return b[i/8]>>(i%8)&1 != 0 }

// SetBits sets the n bits that begin at bit i.
func SetBits(b []byte, i, n uint32) {
	for ; n > 0 && i%8 != 0; i, n = i+1, n-1 {
		b[i/8] |= 1 << (i % 8)
	}
	for ; n >= 8; i, n = i+8, n-8 {
		b[i/8] = 0xff
	}
	for ; n > 0; i, n = i+1, n-1 {
		b[i/8] |= 1 << (i % 8)
	}
}

// ClearBits clears the n bits that begin at bit i. It returns the number of them that were set.
func ClearBits(b []byte, i, n uint32) (were uint32) {
	for ; n > 0; i, n = i+1, n-1 {
		if i%8 == 0 && n >= 8 {
			were += uint32(bits.OnesCount8(b[i/8]))
			b[i/8] = 0
			i, n = i+7, n-7
			continue
		}
		if Bit(b, i) {
			were++
			b[i/8] &^= 1 << (i % 8)
		}
	}
	return were
}

// NextClear returns the first clear bit at or after i and before end, or end if there is none.
func NextClear(b []byte, i, end uint32) uint32 { return next(b, i, end, 0xff) }

// NextSet returns the first set bit at or after i and before end, or end if there is none.
func NextSet(b []byte, i, end uint32) uint32 { return next(b, i, end, 0) }

// next returns the first bit that differs from the bits of skip, which are all equal.
func next(b []byte, i, end uint32, skip byte) uint32 {
	for i < end {
		rest := (b[i/8] ^ skip) >> (i % 8)
		if rest != 0 {
			return min(i+uint32(bits.TrailingZeros8(rest)), end)
		}
		i = (i/8 + 1) * 8
		for i+64 <= end && le.Uint64(b[i/8:]) == uint64(skip)*0x0101010101010101 {
			i += 64
		}
	}
	return end
}

// FindRun finds a run of at most want clear bits before end. It returns the run at bit if that bit is clear. Otherwise it
// returns the first run after bit that is long enough, then the first one before bit, then the longest one.
func FindRun(b []byte, bit, end, want uint32) (at, n uint32) {
	if bit < end && !Bit(b, bit) {
		return bit, min(NextSet(b, bit, end)-bit, want)
	}
	for _, part := range [][2]uint32{{bit, end}, {0, min(bit, end)}} {
		for i := NextClear(b, part[0], part[1]); i < part[1]; {
			run := NextSet(b, i, part[1]) - i
			if run >= want {
				return i, want
			}
			if run > n {
				at, n = i, run
			}
			i = NextClear(b, i+run, part[1])
		}
	}
	return at, n
}
