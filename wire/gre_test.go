package wire

import (
	"bytes"
	"testing"
)

// greFull is a packet whose header has all optional fields (RFC 2890 section 2). Its
// payload has four bytes.
var greFull = unhex(`b000 0800 0000 0000 00000007 00000009 45000014`)

func TestGREWithAllOptions(t *testing.T) {
	h, payload, err := ParseGRE(greFull)
	want := GRE{Type: TypeIPv4, HasChecksum: true, HasKey: true, HasSequence: true, Key: 7, Sequence: 9}
	if err != nil || h != want || len(payload) != 4 {
		t.Fatalf("parsed %+v, % x, error %v; want %+v", h, payload, err, want)
	}
	b := append(bytes.Repeat([]byte{0xff}, h.Len()), payload...)
	h.Put(b)
	if !bytes.Equal(b, greFull) {
		t.Errorf("put % x, want % x", b, greFull)
	}
	PutGREChecksum(b)
	if !GREChecksumOK(b) || GREChecksumOK(patch(b, 16, 0x46)) {
		t.Error("the checksum covers header and payload (RFC 2784 section 2.5)")
	}
}

func TestGRERefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseGRE(b); return err }, []refusal{
		{"three bytes", greFull[:3], ErrShort},
		{"options cut off", greFull[:15], ErrShort},
		{"version 1, of PPTP", patch(greFull, 1, 1), ErrVersion},
		{"the routing bit of RFC 1701", patch(greFull, 0, 0x40), ErrField},
	})
}

func FuzzGRE(f *testing.F) {
	f.Add(greFull)
	f.Add(unhex(`00006558`))
	f.Add(unhex(`20000800 00000001`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseGRE(b)
		if err != nil {
			return
		}
		GREChecksumOK(b)
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		if h.HasChecksum {
			PutGREChecksum(again)
		}
		if got, _, err := ParseGRE(again); err != nil || got != h || !GREChecksumOK(again) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
