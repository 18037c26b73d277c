package boot

import "testing"

// NextSegment returns only segments with virtual addresses from Image (the address of the program) on.
func TestNextSegment(t *testing.T) {
	h := make([]byte, 4096)
	le.PutUint64(h[32:], 64)
	le.PutUint16(h[56:], 5)
	for i, p := range []struct {
		kind, flags uint32
		start, size uint64
	}{{1, 5, Text, 0x1000}, {4, 4, 0, 7}, {1, 6, Text + 0x1000, 0x800}, {ZeroSegment, 6, Text + 0x2000, 0x5000}, {1, 4, Window + 0x80_0000, 0x123}} {
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
	if z := Zeroed(h); z != (Range{Text + 0x2000, Text + 0x7000}) {
		t.Errorf("zeroed: %x", z)
	}
}

// Files returns the segment of the image that holds the program's files. The kernel accesses this segment only through the window
// of physical memory: it has no other virtual address.
func TestFiles(t *testing.T) {
	h := make([]byte, 4096)
	le.PutUint16(h[32:], 64)
	if f := Files(h); f.Size() != 0 {
		t.Errorf("%x", f)
	}
	le.PutUint16(h[56:], 1)
	le.PutUint32(h[64:], loadSegment)
	le.PutUint64(h[64+16:], Window+0x80_0000)
	le.PutUint64(h[64+24:], 0x80_0000)
	le.PutUint64(h[64+40:], 0x123)
	if f := Files(h); f != (Range{0x80_0000, 0x80_0123}) {
		t.Errorf("%x", f)
	}
}

// With any headers, reading them terminates and stays within the page.
func FuzzNextSegment(f *testing.F) {
	f.Add([]byte("\x7fELF"), uint16(64), uint16(3))
	f.Add([]byte{}, uint16(4090), uint16(0xffff))
	f.Fuzz(func(t *testing.T, b []byte, first, count uint16) {
		h := make([]byte, 4096)
		copy(h, b)
		le.PutUint16(h[32:], first)
		le.PutUint16(h[56:], count)
		Zeroed(h)
		Files(h)
		for at := 0; ; {
			_, next, ok := NextSegment(h, at)
			if !ok {
				return
			}
			if next <= at {
				t.Fatalf("from %d to %d", at, next)
			}
			at = next
		}
	})
}
