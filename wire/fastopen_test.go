package wire

import (
	"bytes"
	"testing"
)

// RFC 7413 section 4.1.1: a cookie has 4 to 16 bytes, and an even number of them. An option with another size, or in a
// segment without SYN, is ignored.
func TestFastOpenOption(t *testing.T) {
	for n, valid := range map[int]bool{0: true, 2: false, 4: true, 5: false, 8: true, 16: true, 18: false} {
		cookie := bytes.Repeat([]byte{7}, n)
		raw := append([]byte{uint8(TCPOptFastOpen), uint8(2 + n)}, cookie...)
		for _, syn := range []bool{true, false} {
			var o TCPOptions
			if !o.parse(raw, syn) {
				t.Errorf("a cookie of %d bytes makes the segment malformed", n)
			}
			if o.FastOpen.Present() != (valid && syn) || o.FastOpen.Present() && !bytes.Equal(o.FastOpen.Bytes(), cookie) {
				t.Errorf("%d bytes, SYN %v: %+v", n, syn, o.FastOpen)
			}
		}
	}
}

// The largest cookie fits beside the other options of a SYN.
func TestFastOpenOptionFits(t *testing.T) {
	o := TCPOptions{MSS: 1460, HasWindowScale: true, WindowScale: 7, SACKPermitted: true, HasTimestamps: true, TSVal: 1, TSEcr: 2}
	for _, n := range []int{0, 4, 8, 16} {
		o.FastOpen, _ = NewFastOpenCookie(bytes.Repeat([]byte{9}, n))
		b := make([]byte, o.Len())
		o.put(b)
		var got TCPOptions
		if len(b) > 40 || !got.parse(b, true) || got != o {
			t.Errorf("a cookie of %d bytes: %d bytes of options, %+v, want %+v", n, len(b), got, o)
		}
	}
}
