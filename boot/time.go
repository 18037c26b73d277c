package boot

// The time of the day travels from the loam command to the kernel by the serial port,
// among signals, which are bytes of less than 0x80: as timeSize bytes with seven bits
// each, the lowest first.

const timeSize = 10

// AppendTime appends nanoseconds since 1970.
func AppendTime(b []byte, nanos int64) []byte {
	v := uint64(nanos)
	for range timeSize {
		b = append(b, 0x80|byte(v&0x7f))
		v >>= 7
	}
	return b
}

// TimeReader puts them together again.
type TimeReader struct {
	value uint64
	bytes uint
}

// Take takes a byte, and returns the time when it is the last of one. Bytes of less
// than 0x80 are not its business.
func (r *TimeReader) Take(b byte) (nanos int64, ok bool) {
	if b < 0x80 {
		return 0, false
	}
	r.value |= uint64(b&0x7f) << (7 * r.bytes)
	r.bytes++
	if r.bytes < timeSize {
		return 0, false
	}
	nanos = int64(r.value)
	*r = TimeReader{}
	return nanos, true
}
