package wire

import (
	"bytes"
	"testing"
)

func TestICMPv6OfAnEcho(t *testing.T) {
	src, dst := addr("fe80::1"), addr("fe80::2")
	h, payload, err := ParseICMPv6(echo6)
	want := ICMPv6{Type: ICMPv6Echo, Rest: EchoRest(1, 2)}
	if err != nil || h != want || len(payload) != 8 || h.EchoID() != 1 || h.EchoSeq() != 2 {
		t.Fatalf("parsed %+v, % x, error %v; want %+v", h, payload, err, want)
	}
	b := append(make([]byte, h.Len()), payload...)
	h.Put(b)
	PutICMPv6Checksum(b, src, dst)
	if !ICMPv6ChecksumOK(b, src, dst) {
		t.Errorf("own checksum refused: % x", b)
	}
	if !bytes.Equal(b, echo6) {
		t.Errorf("put % x, want % x", b, echo6)
	}
	if ICMPv6ChecksumOK(b, src, addr("fe80::3")) {
		t.Error("the checksum covers the addresses (RFC 4443 section 2.3), yet a change was not noticed")
	}
}

// RFC 4443 section 2.1: "error messages have message types from 0 to 127".
func TestICMPv6Errors(t *testing.T) {
	for typ, want := range map[ICMPv6Type]bool{ICMPv6Unreachable: true, 127: true, ICMPv6Echo: false, ICMPv6Redirect: false} {
		if got := (ICMPv6{Type: typ}).IsError(); got != want {
			t.Errorf("type %d: error %v, want %v", typ, got, want)
		}
	}
}

func FuzzICMPv6(f *testing.F) {
	f.Add(echo6)
	f.Add(echo6[:7])
	src, dst := addr("fe80::1"), addr("fe80::2")
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseICMPv6(b)
		if err != nil {
			if len(b) >= ICMPv6Len {
				t.Fatalf("% x refused: %v", b, err)
			}
			return
		}
		ICMPv6ChecksumOK(b, src, dst)
		again := append(make([]byte, ICMPv6Len), payload...)
		h.Put(again)
		PutICMPv6Checksum(again, src, dst)
		if got, _, _ := ParseICMPv6(again); got != h || !ICMPv6ChecksumOK(again, src, dst) {
			t.Fatalf("%+v became %+v", h, got)
		}
	})
}
