package wire

import (
	"bytes"
	"testing"
)

// An echo request between two link-local addresses, encoded by hand from RFC 8200 and RFC 4443, including its
// checksum.
var (
	echo6    = unhex(`80 00 7299 0001 0002 0102030405060708`)
	ipv6Echo = append(unhex(`60012345 0010 3a 40
		fe800000000000000000000000000001 fe800000000000000000000000000002`), echo6...)
)

func TestIPv6OfAnEcho(t *testing.T) {
	h, payload, err := ParseIPv6(append(ipv6Echo[:len(ipv6Echo):len(ipv6Echo)], 0, 0)) // padding follows the packet
	want := IPv6{
		FlowLabel: 0x12345, NextHeader: ProtoICMPv6, HopLimit: 64,
		Src: addr("fe80::1"), Dst: addr("fe80::2"), PayloadLen: 16,
	}
	if err != nil || h != want || !bytes.Equal(payload, echo6) {
		t.Fatalf("parsed %+v, % x, error %v; want %+v", h, payload, err, want)
	}
	b := append(make([]byte, h.Len()), payload...)
	h.Put(b)
	if !bytes.Equal(b, ipv6Echo) {
		t.Errorf("put % x, want % x", b, ipv6Echo)
	}
}

// RFC 8200 section 3: traffic class and flow label share a word with the version.
func TestIPv6TrafficClassAndFlowLabel(t *testing.T) {
	h := IPv6{TrafficClass: 0xb9, FlowLabel: MaxFlowLabel, Src: addr("::"), Dst: addr("::1")}
	b := make([]byte, IPv6Len)
	h.Put(b)
	if !bytes.Equal(b[:4], unhex("6b9fffff")) {
		t.Errorf("put % x, want 6b 9f ff ff", b[:4])
	}
	if got, _, err := ParseIPv6(b); err != nil || got != h {
		t.Errorf("put and parsed: %+v, error %v; want %+v", got, err, h)
	}
}

func TestIPv6Refuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseIPv6(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", ipv6Echo[:IPv6Len-1], ErrShort},
		{"version 4", patch(ipv6Echo, 0, 0x45), ErrVersion},
		{"a length beyond the packet", patch(ipv6Echo, 4, 0, 17), ErrLength},
	})
}

func FuzzIPv6(f *testing.F) {
	f.Add(ipv6Echo)
	f.Add(patch(ipv6Echo, 4, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseIPv6(b)
		if err != nil {
			return
		}
		again := append(make([]byte, IPv6Len), payload...)
		h.Put(again)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("% x became % x", b, again)
		}
	})
}
