package image

import (
	"encoding/binary"
	"errors"
	"testing"

	"loam/boot"
)

// smallest returns the smallest file that Prepare accepts: an ELF file with a note, a text and a data segment.
func smallest() []byte {
	b := make([]byte, 2*pageSize)
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[24:], boot.Text)
	le.PutUint64(b[32:], headerSize)
	le.PutUint16(b[56:], 3)
	for i, s := range []struct {
		kind, flags       uint32
		off, virtual, len uint64
	}{
		{4, 4, 0xf00, boot.Image + boot.Load + 0xf00, 0x100},
		{1, 5, 0, boot.Image + boot.Load, pageSize + 16},
		{1, 6, pageSize + 16, boot.Text + pageSize, 64},
	} {
		p := b[headerSize+i*segmentSize:]
		le.PutUint32(p, s.kind)
		le.PutUint32(p[4:], s.flags)
		le.PutUint64(p[segmentOffset:], s.off)
		le.PutUint64(p[segmentVirtual:], s.virtual)
		le.PutUint64(p[segmentPhysical:], s.virtual)
		le.PutUint64(p[segmentInFile:], s.len)
		le.PutUint64(p[segmentInMemory:], s.len)
	}
	return b
}

func TestSmallest(t *testing.T) {
	if err := Prepare(smallest()); err != nil {
		t.Error(err)
	}
}

// Prepare either converts a file or returns an error; it never panics.
func FuzzPrepare(f *testing.F) {
	f.Add(smallest())
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := Prepare(b); err != nil && !errors.Is(err, ErrNotProgram) {
			t.Errorf("error %v", err)
		}
	})
}
