package wire

import (
	"bytes"
	"testing"
)

var capturedARPReply = unhex(`0001 0800 06 04 0002
	beda63ee4ba1 0a000202 0e12036ec250 0a00020f`)

func TestARPOfACapturedReply(t *testing.T) {
	// padded to 46 bytes, the smallest Ethernet payload
	a, err := ParseARP(append(capturedARPReply[:ARPLen:ARPLen], make([]byte, 18)...))
	want := ARP{
		Op:        ARPReply,
		SenderMAC: mac("be:da:63:ee:4b:a1"), SenderIP: addr("10.0.2.2"),
		TargetMAC: mac("0e:12:03:6e:c2:50"), TargetIP: addr("10.0.2.15"),
	}
	if err != nil || a != want {
		t.Fatalf("parsed %+v, error %v; want %+v", a, err, want)
	}
	b := make([]byte, a.Len())
	a.Put(b)
	if !bytes.Equal(b, capturedARPReply) {
		t.Errorf("put % x, want % x", b, capturedARPReply)
	}
}

// RFC 5227 section 1.1: a probe has a sender address of all zeros.
func TestARPProbe(t *testing.T) {
	probe := ARP{Op: ARPRequest, SenderMAC: MAC{2}, SenderIP: addr("0.0.0.0"), TargetIP: addr("10.0.2.15")}
	b := make([]byte, ARPLen)
	probe.Put(b)
	if got, err := ParseARP(b); err != nil || got != probe {
		t.Errorf("put and parsed: %+v, error %v; want %+v", got, err, probe)
	}
}

func TestARPRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, err := ParseARP(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte missing", capturedARPReply[:ARPLen-1], ErrShort},
		{"hardware that is not Ethernet", patch(capturedARPReply, 0, 0, 6), ErrVersion},
		{"a protocol that is not IPv4", patch(capturedARPReply, 2, 0x86, 0xdd), ErrVersion},
		{"a hardware address of 8 bytes", patch(capturedARPReply, 4, 8), ErrLength},
		{"a protocol address of 16 bytes", patch(capturedARPReply, 5, 16), ErrLength},
		{"operation 0", patch(capturedARPReply, 6, 0, 0), ErrField},
		{"reverse ARP", patch(capturedARPReply, 6, 0, 3), ErrField},
	})
}

func FuzzARP(f *testing.F) {
	f.Add(capturedARPReply)
	f.Add(capturedBroadcast[EthernetLen:])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseARP(b)
		if err != nil {
			return
		}
		again := make([]byte, ARPLen)
		a.Put(again)
		if !bytes.Equal(again, b[:ARPLen]) {
			t.Fatalf("% x became % x", b, again)
		}
	})
}
