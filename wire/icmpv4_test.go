package wire

import (
	"bytes"
	"testing"
)

var (
	capturedEcho = unhex(`08 00 1ea6 2af7 0001 c866016b000000001dbd080000000000
		101112131415161718191a1b1c1d1e1f 202122232425262728292a2b2c2d2e2f 3031323334353637`)
	// capturedUnreachable is the ICMP answer to a UDP datagram to port 9999, which had no listener.
	capturedUnreachable = unhex(`03 03 152a 00000000
		4500001f3e1c40004011e4a10a00020f0a000202a013270f000bae3b68690a`)
)

func TestICMPv4OfACapturedEcho(t *testing.T) {
	h, payload, err := ParseICMPv4(capturedEcho)
	want := ICMPv4{Type: ICMPv4Echo, Rest: EchoRest(0x2af7, 1)}
	if err != nil || h != want || len(payload) != 56 {
		t.Fatalf("parsed %+v, error %v; want %+v", h, err, want)
	}
	if h.EchoID() != 0x2af7 || h.EchoSeq() != 1 || h.IsError() {
		t.Errorf("identifier %#x, sequence %d, error %v", h.EchoID(), h.EchoSeq(), h.IsError())
	}
	if !ICMPv4ChecksumOK(capturedEcho) || ICMPv4ChecksumOK(patch(capturedEcho, 63, 0)) {
		t.Error("the checksum of a captured message was refused, or that of a changed one accepted")
	}
	b := append(make([]byte, h.Len()), payload...)
	h.Put(b)
	PutICMPv4Checksum(b)
	if !bytes.Equal(b, capturedEcho) {
		t.Errorf("put % x, want % x", b, capturedEcho)
	}
}

func TestICMPv4OfACapturedError(t *testing.T) {
	h, payload, err := ParseICMPv4(capturedUnreachable)
	if err != nil || h.Type != ICMPv4Unreachable || h.Code != CodePortUnreachable || !h.IsError() {
		t.Fatalf("parsed %+v, error %v", h, err)
	}
	inner, rest, err := ParseIPv4(payload)
	if err != nil || inner.Protocol != ProtoUDP || !bytes.Equal(rest, capturedUDP) {
		t.Errorf("what the error is about: %+v, error %v", inner, err)
	}
}

// RFC 1122 section 3.2.2 lists which messages are errors.
func TestICMPv4Errors(t *testing.T) {
	errors := map[ICMPv4Type]bool{
		ICMPv4Unreachable: true, ICMPv4SourceQuench: true, ICMPv4Redirect: true,
		ICMPv4TimeExceeded: true, ICMPv4ParamProblem: true,
	}
	for i := range 256 {
		h := ICMPv4{Type: ICMPv4Type(i)}
		if h.IsError() != errors[h.Type] {
			t.Errorf("type %d: IsError is %v", i, h.IsError())
		}
	}
}

func TestICMPv4Rest(t *testing.T) {
	// RFC 1191 section 4: the upper half of the word is unused.
	if got := (ICMPv4{Rest: 0xffff_0578}).NextHopMTU(); got != 1400 {
		t.Errorf("next-hop MTU is %d, want 1400", got)
	}
	if got := (ICMPv4{Rest: 20 << 24}).Pointer(); got != 20 {
		t.Errorf("pointer is %d, want 20", got)
	}
}

func TestICMPv4RefusesShortMessages(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseICMPv4(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"seven bytes", capturedEcho[:7], ErrShort},
	})
	if _, payload, err := ParseICMPv4(capturedEcho[:8]); err != nil || len(payload) != 0 {
		t.Errorf("eight bytes: %d of payload, error %v", len(payload), err)
	}
}

func FuzzICMPv4(f *testing.F) {
	f.Add(capturedEcho)
	f.Add(capturedUnreachable)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseICMPv4(b)
		if err != nil {
			return
		}
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		PutICMPv4Checksum(again)
		got, _, err := ParseICMPv4(again)
		if err != nil || got != h || !ICMPv4ChecksumOK(again) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
