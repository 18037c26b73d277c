package boot

// The loam command sends the wall clock time to the kernel over the serial port, between bytes that stand for signals.
// A signal is a byte below 0x80. A time is timeSize bytes with bit 7 set; each has seven bits of the value, the lowest
// bits first.

const timeSize = 10

// AppendTime appends the encoding of a time, in nanoseconds since the start of 1970 (UTC).
func AppendTime(b []byte, nanos int64) []byte {
	v := uint64(nanos)
	for range timeSize {
		b = append(b, 0x80|byte(v&0x7f))
		v >>= 7
	}
	return b
}

// TimeReader decodes times from a stream of bytes. The zero value is ready for use.
type TimeReader struct {
	value uint64
	bytes uint
}

// Take consumes a byte. If the byte completes a time, Take returns the time and true. Bytes below 0x80 are ignored.
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
