package wire

import (
	"bytes"
	"testing"
)

// capturedBroadcast is an ARP request for 10.0.2.2, without its padding.
var capturedBroadcast = unhex(`ffffffffffff 0e12036ec250 0806
	0001 0800 06 04 0001 0e12036ec250 0a00020f 000000000000 0a000202`)

func TestEthernetOfACapturedFrame(t *testing.T) {
	h, payload, err := ParseEthernet(capturedBroadcast)
	want := Ethernet{Dst: Broadcast, Src: mac("0e:12:03:6e:c2:50"), Type: TypeARP}
	if err != nil || h != want || len(payload) != ARPLen {
		t.Fatalf("parsed %+v, %d bytes of payload, error %v; want %+v", h, len(payload), err, want)
	}
	b := make([]byte, h.Len())
	h.Put(b)
	if !bytes.Equal(b, capturedBroadcast[:EthernetLen]) {
		t.Errorf("put % x, want % x", b, capturedBroadcast[:EthernetLen])
	}
}

func TestEthernetTags(t *testing.T) {
	one := VLAN{TPID: TypeVLAN, TCI: 5<<13 | 1<<12 | 4095}
	outer := VLAN{TPID: TypeQinQ, TCI: 7}
	for _, h := range []Ethernet{
		{Type: TypeIPv4},
		{Type: TypeIPv6, Tags: [2]VLAN{one}},
		{Type: TypeARP, Tags: [2]VLAN{outer, one}},
		{Type: MinEtherType, Tags: [2]VLAN{one, one}},
	} {
		b := make([]byte, h.Len()+3)
		h.Put(b)
		got, payload, err := ParseEthernet(b)
		if err != nil || got != h || len(payload) != 3 {
			t.Errorf("put and parsed: %+v, %d bytes of payload, error %v; want %+v", got, len(payload), err, h)
		}
	}
	if one.ID() != 4095 {
		t.Errorf("identifier is %d, want 4095: priority and drop bit do not belong to it", one.ID())
	}
	// 802.1ad outside, 802.1Q inside, written out by hand.
	b := make([]byte, EthernetLen+2*VLANTagLen)
	h := Ethernet{Type: TypeARP, Tags: [2]VLAN{outer, one}}
	h.Put(b)
	if want := unhex("88a8 0007 8100 bfff 0806"); !bytes.Equal(b[12:], want) {
		t.Errorf("tags are % x, want % x", b[12:], want)
	}
}

func TestEthernetRefuses(t *testing.T) {
	addresses := make([]byte, 12)
	frame := func(s string) []byte { return append(addresses[:12:12], unhex(s)...) }
	testRefusals(t, func(b []byte) error { _, _, err := ParseEthernet(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"no type", frame("08"), ErrShort},
		{"802.3 length instead of a type", frame("05dc 4242 03"), ErrField},
		{"highest value that is not a type", frame("05ff"), ErrField},
		{"a tag cut off", frame("8100 0001 08"), ErrShort},
		{"a second tag cut off", frame("88a8 0001 8100 0002"), ErrShort},
		{"three tags", frame("8100 0001 8100 0002 8100 0003 0800"), ErrField},
		{"a length inside a tag", frame("8100 0001 0040"), ErrField},
	})
}

func TestMAC(t *testing.T) {
	m := MAC{0x0e, 0x12, 0x03, 0x6e, 0xc2, 0x50}
	if got := m.String(); got != "0e:12:03:6e:c2:50" {
		t.Errorf("String is %q", got)
	}
	if m.IsMulticast() || m.IsZero() {
		t.Error("a unicast address was taken for multicast or none")
	}
	if !Broadcast.IsMulticast() || !(MAC{0x33, 0x33}).IsMulticast() || !(MAC{}).IsZero() {
		t.Error("broadcast, multicast or the zero address not recognised")
	}
}

func FuzzEthernet(f *testing.F) {
	f.Add(capturedBroadcast)
	f.Add(append(make([]byte, 12), unhex("88a8 0007 8100 bfff 0806")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseEthernet(b)
		if err != nil {
			return
		}
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		if !bytes.Equal(again, b) {
			t.Fatalf("% x became % x", b, again)
		}
	})
}
