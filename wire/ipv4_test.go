package wire

import (
	"bytes"
	"reflect"
	"testing"
)

var (
	// An echo request with a record route option (ping -R).
	capturedRecordRoute = unhex(`4f 00 007c 3cbb 4000 40 01 a797 0a00020f 0a000202
		01 07 27 08 0a00020f 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
		0800 a1c1 2af5 0001 c866016b00000000 9aa3080000000000
		101112131415161718191a1b1c1d1e1f 202122232425262728292a2b2c2d2e2f 3031323334353637`)
	// The last of three fragments of an echo request, 2960 bytes into it.
	capturedFragment = unhex(`45 00 0044 3cbe 0172 40 01 2479 0a00020f 0a000202
		88898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7`)
	// The IPv4 header of a TCP segment marked ECT(0).
	capturedECT = unhex(`45 02 0088 4b3a 4000 40 06 d723 0a00020f 0a000202`)
)

func TestIPv4OfACapturedFragment(t *testing.T) {
	h, payload, err := ParseIPv4(append(capturedFragment[:68:68], 0, 0, 0)) // padding follows the packet
	want := IPv4{
		ID: 0x3cbe, FragOffset: 2960, TTL: 64, Protocol: ProtoICMP,
		Src: addr("10.0.2.15"), Dst: addr("10.0.2.2"), PayloadLen: 48,
	}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Fatalf("parsed %+v, error %v; want %+v", h, err, want)
	}
	if !bytes.Equal(payload, capturedFragment[IPv4MinLen:]) {
		t.Errorf("payload is % x, padding and all", payload)
	}
	if !h.IsFragment() || !IPv4ChecksumOK(capturedFragment) {
		t.Error("not recognised as a fragment, or its checksum refused")
	}
	b := make([]byte, h.Len())
	h.Put(b)
	if !bytes.Equal(b, capturedFragment[:IPv4MinLen]) {
		t.Errorf("put % x, want % x", b, capturedFragment[:IPv4MinLen])
	}
}

func TestIPv4OptionsOfACapturedPacket(t *testing.T) {
	h, _, err := ParseIPv4(capturedRecordRoute)
	if err != nil {
		t.Fatal(err)
	}
	if h.Len() != IPv4MaxLen || h.PayloadLen != 64 || !h.DontFragment || h.IsFragment() {
		t.Errorf("parsed %+v", h)
	}
	n := 0
	h.EachOption(func(kind IPv4Option, data []byte) bool {
		n++
		if kind != OptRecordRoute || len(data) != 37 || data[0] != 8 {
			t.Errorf("option %d with % x, want a record route with its pointer at 8", kind, data)
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d options, want 1", n)
	}
	b := make([]byte, h.Len())
	h.Put(b)
	if want := capturedRecordRoute[:IPv4MaxLen]; !bytes.Equal(b, want) {
		t.Errorf("put % x, want % x", b, want)
	}
}

func TestIPv4EachOptionStopsOnRequest(t *testing.T) {
	h := IPv4{Options: unhex("01 94 04 0000 01 44 04 0500 00 ffff")}
	var kinds []IPv4Option
	h.EachOption(func(kind IPv4Option, _ []byte) bool { kinds = append(kinds, kind); return true })
	if want := []IPv4Option{OptRouterAlert, OptTimestamp}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("options %v, want %v: nothing behind the end counts", kinds, want)
	}
	kinds = nil
	h.EachOption(func(kind IPv4Option, _ []byte) bool { kinds = append(kinds, kind); return false })
	if len(kinds) != 1 {
		t.Errorf("%d options after false, want 1", len(kinds))
	}
	if !OptRouterAlert.Copied() || OptTimestamp.Copied() || OptRecordRoute.Copied() {
		t.Error("the copied flag is the top bit")
	}
}

func TestIPv4RoundTrip(t *testing.T) {
	a, b := addr("192.0.2.1"), addr("255.255.255.255")
	for _, h := range []IPv4{
		{Src: a, Dst: b},
		{Src: a, Dst: b, TOS: 0xb8 | 3, ID: 0xffff, TTL: 255, Protocol: 255, DontFragment: true, PayloadLen: 1},
		{Src: a, Dst: b, MoreFragment: true, PayloadLen: 8},
		{Src: a, Dst: b, MoreFragment: true, DontFragment: true, FragOffset: 65504, PayloadLen: 8},
		{Src: a, Dst: b, FragOffset: 65512, PayloadLen: 3}, // a fragment that reaches the last possible byte of a datagram
		{Src: a, Dst: b, PayloadLen: MaxIPv4 - IPv4MinLen},
		{Src: a, Dst: b, Options: unhex("94 04 0000"), PayloadLen: 2},
	} {
		buf := make([]byte, h.Len()+h.PayloadLen)
		h.Put(buf)
		got, payload, err := ParseIPv4(buf)
		if err != nil || !reflect.DeepEqual(got, h) || len(payload) != h.PayloadLen {
			t.Errorf("put and parsed: %+v, error %v; want %+v", got, err, h)
		}
		if !IPv4ChecksumOK(buf) {
			t.Errorf("%+v: Put wrote a wrong checksum", h)
		}
	}
}

func TestIPv4ChecksumDetectsEveryBit(t *testing.T) {
	for i := range capturedECT {
		for bit := range 8 {
			if i == 0 && bit < 4 {
				continue // the header length, which determines the checksummed bytes
			}
			b := patch(capturedECT, i, capturedECT[i]^1<<bit)
			if IPv4ChecksumOK(b) {
				t.Errorf("bit %d of byte %d flipped, and the checksum still right", bit, i)
			}
		}
	}
}

func TestIPv4Refuses(t *testing.T) {
	good := capturedFragment
	options := func(s string) []byte { // returns a header with the options s, for a packet without payload
		opts := unhex(s)
		h := IPv4{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Options: opts}
		b := make([]byte, h.Len())
		h.Put(b)
		return b
	}
	testRefusals(t, func(b []byte) error { _, _, err := ParseIPv4(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", good[:IPv4MinLen-1], ErrShort},
		{"version 6", patch(good, 0, 0x65), ErrVersion},
		{"a header length of 16", patch(good, 0, 0x44), ErrLength},
		{"a header length of 0", patch(good, 0, 0x40), ErrLength},
		{"a header longer than the packet says it is", patch(good, 2, 0, 19), ErrLength},
		{"options beyond the total length", patch(patch(good, 0, 0x46), 2, 0, 20), ErrLength},
		{"a payload that is not there", good[:len(good)-1], ErrLength},
		{"the largest offset with more than fits", patch(good, 6, 0x1f, 0xff), ErrLength},
		{"a fragment in the middle of no whole eight bytes", patch(patch(good, 6, 0x20), 3, 0x43), ErrLength},
		{"a fragment in the middle with nothing in it", patch(patch(good, 6, 0x20), 2, 0, 20), ErrLength},
		{"an option without its length", options("01 01 01 94"), ErrOption},
		{"an option of length 0", options("94 00 0000"), ErrOption},
		{"an option of length 1", options("94 01 0000"), ErrOption},
		{"an option longer than the header", options("94 05 0000"), ErrOption},
	})
}

func FuzzIPv4(f *testing.F) {
	f.Add(capturedFragment)
	f.Add(capturedRecordRoute)
	f.Add(patch(capturedECT, 2, 0, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseIPv4(b)
		if err != nil {
			return
		}
		h.EachOption(func(IPv4Option, []byte) bool { return true })
		IPv4ChecksumOK(b)
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		got, _, err := ParseIPv4(again)
		if err != nil || !reflect.DeepEqual(got, h) || !IPv4ChecksumOK(again) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}
