package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
)

// Messages written out from RFC 8415 sections 8 and 21 and RFC 3646 section 3.
var (
	dhcpv6Question = unhex(`0b 123456  0001 000a 00030001 02000000000a  0006 0006 0017 0020 0053  0008 0002 0064`)
	dhcpv6Answer   = unhex(`07 123456  0001 000a 00030001 02000000000a  0002 000a 00030001 02000000000b
		0017 0010 20010db8000000000000000000000053  0020 0004 00000e10`)
)

func TestDHCPv6(t *testing.T) {
	client, server := unhex("00030001 02000000000a"), unhex("00030001 02000000000b")
	for _, c := range []struct {
		b    []byte
		want DHCPv6
	}{
		{dhcpv6Question, DHCPv6{Type: DHCPv6Request, Transaction: 0x123456, ClientID: client, Elapsed: 100}},
		{dhcpv6Answer, DHCPv6{Type: DHCPv6Reply, Transaction: 0x123456, ClientID: client, ServerID: server, DNS: []netip.Addr{addr("2001:db8::53")}, Refresh: 3600}},
	} {
		m, err := ParseDHCPv6(c.b)
		if err != nil || !reflect.DeepEqual(m, c.want) {
			t.Errorf("% x is %+v, %v; want %+v", c.b, m, err, c.want)
		}
		if b := m.Append(nil); !bytes.Equal(b, c.b) {
			t.Errorf("put % x, want % x", b, c.b)
		}
	}
}

func TestDHCPv6Refuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, err := ParseDHCPv6(b); return err }, []refusal{
		{"half a header", dhcpv6Answer[:3], ErrShort},
		{"half an option's header", dhcpv6Answer[:7], ErrOption},
		{"an option beyond the end", dhcpv6Answer[:12], ErrOption},
		{"half an address", unhex("07 123456 0017 0008 20010db800000000"), ErrOption},
		{"a time of two bytes", unhex("07 123456 0020 0002 0e10"), ErrOption},
		{"a status of one", unhex("07 123456 000d 0001 00"), ErrOption},
	})
}

func FuzzDHCPv6(f *testing.F) {
	f.Add(dhcpv6Question)
	f.Add(dhcpv6Answer)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDHCPv6(b)
		if err != nil || m.Type != DHCPv6Reply {
			return
		}
		again := m.Append(nil)
		m.Elapsed = 0
		got, err := ParseDHCPv6(again)
		if len(m.ClientID) == 0 {
			m.ClientID = nil
		}
		if len(m.ServerID) == 0 {
			m.ServerID = nil
		}
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
	})
}
