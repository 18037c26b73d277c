package wire

import (
	"bytes"
	"testing"
)

// mplsInner is an entry (RFC 3032 figure 1) with label 16, traffic class 5 and TTL 64. It
// is the bottom of the stack.
var mplsInner = unhex(`00010b40`)

func TestMPLSEntry(t *testing.T) {
	h, rest, err := ParseMPLS(append(mplsInner[:4:4], 0x45))
	want := MPLS{Label: 16, TrafficClass: 5, BottomOfStack: true, TTL: 64}
	if err != nil || h != want || !bytes.Equal(rest, []byte{0x45}) {
		t.Fatalf("parsed %+v, % x, error %v; want %+v", h, rest, err, want)
	}
	b := make([]byte, h.Len())
	h.Put(b)
	if !bytes.Equal(b, mplsInner) {
		t.Errorf("put % x, want % x", b, mplsInner)
	}
	if _, _, err := ParseMPLS(mplsInner[:3]); err != ErrShort {
		t.Errorf("three bytes: error %v, want %v", err, ErrShort)
	}
}

func FuzzMPLS(f *testing.F) {
	f.Add(mplsInner)
	f.Add(unhex(`fffff0ff`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _, err := ParseMPLS(b)
		if err != nil {
			return
		}
		again := make([]byte, MPLSLen)
		h.Put(again)
		if !bytes.Equal(again, b[:MPLSLen]) {
			t.Fatalf("% x became % x", b, again)
		}
	})
}
