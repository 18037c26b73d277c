package boot

import (
	"encoding/binary"
	"testing"
)

// Only what is loaded is a segment.
func TestNextSegment(t *testing.T) {
	h := make([]byte, 4096)
	le := binary.LittleEndian
	le.PutUint64(h[32:], 64)
	le.PutUint16(h[56:], 3)
	for i, p := range []struct {
		kind, flags uint32
		start, size uint64
	}{{1, 5, Text, 0x1000}, {4, 4, 0, 7}, {1, 6, Text + 0x1000, 0x800}} {
		b := h[64+56*i:]
		le.PutUint32(b, p.kind)
		le.PutUint32(b[4:], p.flags)
		le.PutUint64(b[16:], p.start)
		le.PutUint64(b[40:], p.size)
	}
	var got []Segment
	for at := 0; ; {
		s, next, ok := NextSegment(h, at)
		if !ok {
			break
		}
		got, at = append(got, s), next
	}
	want := []Segment{{Text, Text + 0x1000, false, true}, {Text + 0x1000, Text + 0x1800, true, false}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}
