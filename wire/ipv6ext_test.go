package wire

import (
	"bytes"
	"testing"
)

// Headers encoded by hand from RFC 8200 sections 4.2 to 4.6.
var (
	hopByHop6 = unhex(`11 00 0502 0000 0100`)                      // the options router alert and PadN
	fragment6 = unhex(`11 00 0591 deadbeef`)                       // offset 1424; more fragments follow
	destOpts6 = unhex(`06 01 1e02 abcd 00 0107 0000 0000 0000 00`) // an option of 2 bytes, padding of all kinds
)

func TestIPv6Ext(t *testing.T) {
	h, rest, err := ParseIPv6Ext(append(bytes.Clone(destOpts6)[:16:16], 7, 7))
	if err != nil || h.Next != ProtoTCP || h.Len() != 16 || len(rest) != 2 {
		t.Fatalf("%+v, %d bytes behind it, %v", h, len(rest), err)
	}
	o, next, ok, err := NextIPv6Option(h.Data, 0)
	if !ok || err != nil || o.Type != 0x1e || o.At != 0 || !bytes.Equal(o.Data, unhex("abcd")) {
		t.Errorf("the option is %+v, %v, %v", o, ok, err)
	}
	if o, _, ok, err = NextIPv6Option(h.Data, next); ok || err != nil {
		t.Errorf("then comes %+v, %v", o, err)
	}
	b := make([]byte, h.Len())
	if h.Put(b); !bytes.Equal(b, destOpts6) {
		t.Errorf("put % x, want % x", b, destOpts6)
	}
	if _, _, _, err := NextIPv6Option([]byte{0x1e, 5, 0, 0}, 0); err != ErrOption {
		t.Errorf("an option that is longer than the header: %v", err)
	}
}

func TestIPv6Fragment(t *testing.T) {
	h, payload, err := ParseIPv6Fragment(append(bytes.Clone(fragment6)[:8:8], 1, 2, 3))
	want := IPv6Fragment{Next: ProtoUDP, Offset: 1424, More: true, ID: 0xdeadbeef}
	if err != nil || h != want || len(payload) != 3 {
		t.Fatalf("%+v, %d bytes, %v; want %+v", h, len(payload), err, want)
	}
	b := make([]byte, IPv6FragmentLen)
	if h.Put(b); !bytes.Equal(b, fragment6) {
		t.Errorf("put % x, want % x", b, fragment6)
	}
}

func TestIPv6ExtRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseIPv6Ext(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"seven bytes", hopByHop6[:7], ErrShort},
		{"less than it says", destOpts6[:15], ErrLength},
	})
	testRefusals(t, func(b []byte) error { _, _, err := ParseIPv6Fragment(b); return err }, []refusal{
		{"seven bytes", fragment6[:7], ErrShort},
	})
}

// The protocol of a packet is found after any extension headers.
func TestSkipIPv6Ext(t *testing.T) {
	first := patch(fragment6, 2, 0, 1)
	for name, c := range map[string]struct {
		next      Protocol
		b         []byte
		proto     Protocol
		later, ok bool
	}{
		"nothing":              {ProtoTCP, nil, ProtoTCP, false, true},
		"options":              {ProtoHopByHop, append(bytes.Clone(hopByHop6), 9), ProtoUDP, false, true},
		"a first fragment":     {ProtoIPv6Fragment, append(first, 9), ProtoUDP, false, true},
		"a later fragment":     {ProtoIPv6Fragment, append(bytes.Clone(fragment6), 9), ProtoUDP, true, true},
		"one that ends":        {ProtoHopByHop, hopByHop6[:4], ProtoHopByHop, false, false},
		"a fragment that ends": {ProtoIPv6Fragment, fragment6[:4], 0, true, false},
	} {
		proto, _, later, ok := SkipIPv6Ext(c.next, c.b)
		if proto != c.proto || later != c.later || ok != c.ok {
			t.Errorf("%s: protocol %d, later %v, ok %v", name, proto, later, ok)
		}
	}
}

func FuzzIPv6Ext(f *testing.F) {
	f.Add(hopByHop6)
	f.Add(destOpts6)
	f.Add(fragment6)
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, payload, err := ParseIPv6Fragment(b); err == nil {
			again := append(make([]byte, IPv6FragmentLen), payload...)
			h.Put(again)
			if got, _, _ := ParseIPv6Fragment(again); got != h {
				t.Fatalf("%+v became %+v", h, got)
			}
		}
		for _, next := range []Protocol{ProtoHopByHop, ProtoIPv6Fragment} {
			if _, rest, _, ok := SkipIPv6Ext(next, b); ok && !bytes.HasSuffix(b, rest) {
				t.Fatal("what is behind is not of the packet")
			}
		}
		h, rest, err := ParseIPv6Ext(b)
		if err != nil {
			return
		}
		again := append(make([]byte, h.Len()), rest...)
		h.Put(again)
		if !bytes.Equal(again, b) {
			t.Fatalf("% x became % x", b, again)
		}
		for at := 0; ; {
			o, next, ok, err := NextIPv6Option(h.Data, at)
			if !ok || err != nil {
				break
			}
			if next <= at || o.At < at || next != o.At+2+len(o.Data) {
				t.Fatalf("option %+v at %d leads to %d", o, at, next)
			}
			at = next
		}
	})
}
