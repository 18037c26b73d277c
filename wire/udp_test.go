package wire

import (
	"bytes"
	"testing"
)

// capturedUDP is a datagram with the payload "hi\n" to port 9999. Its checksum was
// computed in software.
var capturedUDP = unhex(`a013 270f 000b ae3b 68690a`)

func TestUDPOfACapturedDatagram(t *testing.T) {
	src, dst := addr("10.0.2.15"), addr("10.0.2.2")
	h, payload, err := ParseUDP(capturedUDP)
	want := UDP{SrcPort: 0xa013, DstPort: 9999, PayloadLen: 3}
	if err != nil || h != want || string(payload) != "hi\n" {
		t.Fatalf("parsed %+v, %q, error %v; want %+v", h, payload, err, want)
	}
	if !UDPChecksumOK(capturedUDP, src, dst) {
		t.Error("the checksum of a captured datagram was refused")
	}
	if UDPChecksumOK(patch(capturedUDP, 8, 'H'), src, dst) || UDPChecksumOK(capturedUDP, src, addr("10.0.2.3")) {
		t.Error("the checksum covers payload and addresses, yet a change was not noticed")
	}
	b := append(make([]byte, UDPLen), payload...)
	h.Put(b)
	PutUDPChecksum(b, src, dst)
	if !bytes.Equal(b, capturedUDP) {
		t.Errorf("put % x, want % x", b, capturedUDP)
	}
}

// RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
func TestUDPChecksumIsNeverZero(t *testing.T) {
	src, dst := addr("10.0.2.15"), addr("10.0.2.2")
	h := UDP{SrcPort: 1, DstPort: 2, PayloadLen: 2}
	b := make([]byte, UDPLen+2)
	h.Put(b)
	PutUDPChecksum(b, src, dst)
	copy(b[8:], b[6:8]) // the complement of the sum of all other words makes the sum 0xffff
	b[6], b[7] = 0, 0
	PutUDPChecksum(b, src, dst)
	if b[6] != 0xff || b[7] != 0xff {
		t.Fatalf("checksum is %x, want ffff", b[6:8])
	}
	if !UDPChecksumOK(b, src, dst) {
		t.Error("a checksum of ffff was refused")
	}
}

func TestUDPWithoutChecksum(t *testing.T) {
	b := patch(capturedUDP, 6, 0, 0)
	h, _, err := ParseUDP(b)
	if err != nil || !h.NoChecksum {
		t.Errorf("parsed %+v, error %v; want NoChecksum", h, err)
	}
	if !UDPChecksumOK(b, addr("10.0.2.15"), addr("10.0.2.2")) {
		t.Error("IPv4 allows a datagram without a checksum (RFC 768)")
	}
	if UDPChecksumOK(b, addr("fe80::1"), addr("fe80::2")) {
		t.Error("IPv6 does not allow a datagram without a checksum (RFC 8200 section 8.1)")
	}
}

func TestUDPRoundTrip(t *testing.T) {
	for _, src := range []string{"192.0.2.1", "2001:db8::1"} {
		for _, n := range []int{0, 1, 2, 1472, 65535 - UDPLen} {
			h := UDP{SrcPort: 65535, DstPort: 53, PayloadLen: n}
			b := make([]byte, h.Len()+n, h.Len()+n+5)
			h.Put(b)
			PutUDPChecksum(b, addr(src), addr(src))
			got, payload, err := ParseUDP(b[:cap(b)]) // more bytes follow the datagram, as in an IP packet
			if err != nil || got != h || len(payload) != n {
				t.Errorf("put and parsed: %+v, %d bytes, error %v; want %+v", got, len(payload), err, h)
			}
			if !UDPChecksumOK(b[:cap(b)], addr(src), addr(src)) {
				t.Errorf("%s, %d bytes: own checksum refused", src, n)
			}
		}
	}
}

func TestUDPRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseUDP(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", capturedUDP[:7], ErrShort},
		{"a length inside the header", patch(capturedUDP, 4, 0, 7), ErrLength},
		{"a length of 0, which only a jumbogram has", patch(capturedUDP, 4, 0, 0), ErrLength},
		{"a length beyond the packet", patch(capturedUDP, 4, 0, 12), ErrLength},
	})
}

func FuzzUDP(f *testing.F) {
	f.Add(capturedUDP)
	f.Add(patch(capturedUDP, 4, 0, 8, 0, 0))
	src, dst := addr("10.0.2.15"), addr("10.0.2.2")
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseUDP(b)
		if err != nil {
			return
		}
		UDPChecksumOK(b, src, dst)
		again := append(make([]byte, UDPLen), payload...)
		h.Put(again)
		if !h.NoChecksum {
			PutUDPChecksum(again, src, dst)
		}
		got, _, err := ParseUDP(again)
		if err != nil || got != h || !UDPChecksumOK(again, src, dst) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
