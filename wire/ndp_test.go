package wire

import (
	"bytes"
	"net/netip"
	"testing"
)

// A solicitation and its answer, encoded by hand from RFC 4861 sections 4.3 and 4.4.
var (
	solicitation6  = unhex(`87 00 0000 00000000 20010db8000000000000000000000001 0101 02000000000b`)
	advertisement6 = unhex(`88 00 0000 60000000 20010db8000000000000000000000001 0201 02000000000a`)
)

func TestNeighbor(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want Neighbor
	}{
		{solicitation6, Neighbor{Target: addr("2001:db8::1"), LinkAddr: mac("02:00:00:00:00:0b")}},
		{solicitation6[:NeighborLen], Neighbor{Target: addr("2001:db8::1")}},
		{advertisement6, Neighbor{Advertisement: true, Target: addr("2001:db8::1"), LinkAddr: mac("02:00:00:00:00:0a"), Solicited: true, Override: true}},
	} {
		n, err := ParseNeighbor(c.b)
		if err != nil || n != c.want {
			t.Errorf("% x is %+v, %v; want %+v", c.b, n, err, c.want)
		}
		b := make([]byte, n.Len())
		if n.Put(b); !bytes.Equal(b, c.b) {
			t.Errorf("put % x, want % x", b, c.b)
		}
	}
	other := append(bytes.Clone(solicitation6), unhex("0e01 000000000000")...)
	if n, err := ParseNeighbor(other); err != nil || n.LinkAddr != mac("02:00:00:00:00:0b") {
		t.Errorf("with an option of another kind behind (section 4.6): %+v, %v", n, err)
	}
}

// RFC 4861 section 7.1: messages that a host must ignore.
func TestNeighborRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, err := ParseNeighbor(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"half a target", solicitation6[:20], ErrShort},
		{"a code", patch(solicitation6, 1, 1), ErrField},
		{"a group as target", patch(solicitation6, 8, 0xff, 2), ErrField},
		{"another message", patch(solicitation6, 0, 133), ErrField},
		{"a source that is at a group of stations", patch(solicitation6, NeighborLen+2, 3), ErrField},
		{"a target that is at a group of stations", patch(advertisement6, NeighborLen+2, 0xff), ErrField},
		{"an option without length", patch(solicitation6, 25, 0), ErrOption},
		{"an option beyond the end", patch(solicitation6, 25, 2), ErrOption},
	})
}

// The addresses of a station follow RFC 4291 sections 2.5.1 and 2.7.1 and RFC 2464
// section 7.
func TestAddressesOfStations(t *testing.T) {
	if got := SolicitedNode(addr("4037::1:800:200e:8c6c")); got != addr("ff02::1:ff0e:8c6c") {
		t.Errorf("the group is %v", got)
	}
	if got := MulticastMAC6(addr("ff02::1:ff0e:8c6c")); got != mac("33:33:ff:0e:8c:6c") {
		t.Errorf("which is at %v", got)
	}
	if got := LinkLocal6(mac("34:56:78:9a:bc:de")); got != addr("fe80::3656:78ff:fe9a:bcde") {
		t.Errorf("the link-local address is %v", got)
	}
}

func FuzzNeighbor(f *testing.F) {
	f.Add(solicitation6)
	f.Add(advertisement6)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseNeighbor(b)
		if err != nil {
			return
		}
		again := make([]byte, n.Len())
		n.Put(again)
		if got, err := ParseNeighbor(again); err != nil || got != n {
			t.Fatalf("%+v became %+v, %v", n, got, err)
		}
	})
}

// Unspecified, multicast, loopback and IPv4-mapped addresses are not addresses of other hosts.
func TestIsHost6(t *testing.T) {
	for a, want := range map[string]bool{
		"2001:db8::1": true, "fe80::1": true, "fd00::1": true, "::2": true,
		"::": false, "::1": false, "ff02::1": false, "ff0e::1": false, "::ffff:192.0.2.1": false, "192.0.2.1": false,
	} {
		if IsHost6(addr(a)) != want {
			t.Errorf("%s: %v, want %v", a, !want, want)
		}
	}
	if IsHost6(netip.Addr{}) {
		t.Error("no address is a host's")
	}
}
