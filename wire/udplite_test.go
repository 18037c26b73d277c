package wire

import (
	"bytes"
	"testing"
)

// A change of a covered byte is detected, and a change of another byte is not (RFC 3828 section 3.1).
func TestUDPLiteCoverage(t *testing.T) {
	for _, src := range []string{"192.0.2.1", "2001:db8::1"} {
		for _, coverage := range []uint16{0, 8, 9, 10, 11, 20} {
			h := UDPLite{SrcPort: 65535, DstPort: 53, Coverage: coverage}
			b := append(make([]byte, h.Len()), "twelve bytes"...)
			h.Put(b)
			PutUDPLiteChecksum(b, addr(src), addr(src))
			got, payload, err := ParseUDPLite(b)
			if err != nil || got != h || string(payload) != "twelve bytes" {
				t.Errorf("put and parsed: %+v, %q, error %v; want %+v", got, payload, err, h)
			}
			for i := range b {
				changed := bytes.Clone(b)
				changed[i] ^= 0x40
				if _, _, err := ParseUDPLite(changed); err != nil {
					continue
				}
				if ok, covered := UDPLiteChecksumOK(changed, addr(src), addr(src)), i < h.Covered(len(b)); ok == covered {
					t.Errorf("coverage %d, byte %d changed: checksum accepted: %v", coverage, i, ok)
				}
			}
			if !UDPLiteChecksumOK(b, addr(src), addr(src)) || UDPLiteChecksumOK(patch(b, 6, 0, 0), addr(src), addr(src)) {
				t.Errorf("coverage %d: its checksum is rejected, or a missing checksum is accepted", coverage)
			}
		}
	}
}

// Linux 6.18 sent this datagram with the payload "some" from 127.0.0.1 to itself. The
// option UDPLITE_SEND_CSCOV was 8.
var capturedUDPLite = unhex(`9cc8 9cc9 0008 c7ce 736f6d65`)

// The pseudo header has the number of UDP-Lite and the length of the whole datagram.
func TestUDPLiteOfACapturedDatagram(t *testing.T) {
	b := patch(capturedUDPLite, 6, 0, 0)
	PutUDPLiteChecksum(b, addr("127.0.0.1"), addr("127.0.0.1"))
	if want := capturedUDPLite[6:8]; !bytes.Equal(b[6:8], want) {
		t.Errorf("checksum % x, want % x", b[6:8], want)
	}
}

func TestUDPLiteRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseUDPLite(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", capturedUDPLite[:7], ErrShort},
		{"a coverage inside the header", patch(capturedUDPLite, 4, 0, 7), ErrLength},
		{"a coverage beyond the datagram", patch(capturedUDPLite, 4, 0, 13), ErrLength},
	})
}

func FuzzUDPLite(f *testing.F) {
	f.Add(capturedUDPLite)
	f.Add(unhex(`04d2 162e 0000 0000`))
	src, dst := addr("10.0.2.15"), addr("10.0.2.2")
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseUDPLite(b)
		if err != nil {
			return
		}
		UDPLiteChecksumOK(b, src, dst)
		again := append(make([]byte, UDPLen), payload...)
		h.Put(again)
		PutUDPLiteChecksum(again, src, dst)
		got, _, err := ParseUDPLite(again)
		if err != nil || got != h || !UDPLiteChecksumOK(again, src, dst) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
