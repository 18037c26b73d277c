package wire

import (
	"bytes"
	"testing"
)

// vxlanHeader is the header of RFC 7348 figure 1, with network 0x123456.
var vxlanHeader = unhex(`08000000 12345600`)

func TestVXLANHeader(t *testing.T) {
	h, frame, err := ParseVXLAN(append(vxlanHeader[:8:8], 1, 2))
	if err != nil || h != (VXLAN{0x123456}) || !bytes.Equal(frame, []byte{1, 2}) {
		t.Fatalf("parsed %+v, % x, error %v", h, frame, err)
	}
	b := bytes.Repeat([]byte{0xff}, h.Len())
	h.Put(b)
	if !bytes.Equal(b, vxlanHeader) {
		t.Errorf("put % x, want % x", b, vxlanHeader)
	}
}

func TestVXLANRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseVXLAN(b); return err }, []refusal{
		{"seven bytes", vxlanHeader[:7], ErrShort},
		{"no I flag", patch(vxlanHeader, 0, 0xf7), ErrField},
	})
}

func FuzzVXLAN(f *testing.F) {
	f.Add(vxlanHeader)
	f.Add(patch(vxlanHeader, 0, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _, err := ParseVXLAN(b)
		if err != nil {
			return
		}
		again := make([]byte, VXLANLen)
		h.Put(again)
		if got, _, err := ParseVXLAN(again); err != nil || got != h {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
