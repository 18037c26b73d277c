package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
)

// Messages encoded by hand from RFC 8415 sections 8 and 21 and RFC 3646 section 3.
var (
	dhcpv6Question = unhex(`0b 123456  0001 000a 00030001 02000000000a  0006 0006 0017 0020 0053  0008 0002 0064`)
	dhcpv6Answer   = unhex(`07 123456  0001 000a 00030001 02000000000a  0002 000a 00030001 02000000000b
		0017 0010 20010db8000000000000000000000053  0020 0004 00000e10`)
	dhcpv6Solicit = unhex(`01 123456  0001 000a 00030001 02000000000a  0003 000c 00000001 00000000 00000000  000e 0000
		0006 0004 0017 0052  0008 0002 0000`)
	dhcpv6Offer = unhex(`02 123456  0001 000a 00030001 02000000000a  0002 000a 00030001 02000000000b
		0003 0028 00000001 00000708 00000b40  0005 0018 20010db8000000000000000000000007 00000e10 00001c20  0007 0001 ff  0052 0004 00000078`)
	dhcpv6NoneLeft = unhex(`02 123456  0001 000a 00030001 02000000000a  0002 000a 00030001 02000000000b
		0003 0012 00000001 00000000 00000000  000d 0002 0002`)
)

func TestDHCPv6(t *testing.T) {
	client, server := unhex("00030001 02000000000a"), unhex("00030001 02000000000b")
	for _, c := range []struct {
		b    []byte
		want DHCPv6
	}{
		{dhcpv6Question, DHCPv6{Type: DHCPv6InformationRequest, Transaction: 0x123456, ClientID: client, Elapsed: 100}},
		{dhcpv6Answer, DHCPv6{Type: DHCPv6Reply, Transaction: 0x123456, ClientID: client, ServerID: server, DNS: []netip.Addr{addr("2001:db8::53")}, Refresh: 3600}},
		{dhcpv6Solicit, DHCPv6{Type: DHCPv6Solicit, Transaction: 0x123456, ClientID: client, IA: &DHCPv6IA{ID: 1}, RapidCommit: true}},
		{dhcpv6Offer, DHCPv6{Type: DHCPv6Advertise, Transaction: 0x123456, ClientID: client, ServerID: server, Preference: 255, SolMaxRT: 120,
			IA: &DHCPv6IA{ID: 1, T1: 1800, T2: 2880, Addresses: []DHCPv6Address{{addr("2001:db8::7"), 3600, 7200}}}}},
		{dhcpv6NoneLeft, DHCPv6{Type: DHCPv6Advertise, Transaction: 0x123456, ClientID: client, ServerID: server, IA: &DHCPv6IA{ID: 1, Status: DHCPv6NoAddrs}}},
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
		{"half an IA", unhex("07 123456 0003 0008 0000000100000000"), ErrOption},
		{"half an address of one", unhex("07 123456 0003 0020 00000001 00000000 00000000 0005 0010 20010db8000000000000000000000007"), ErrOption},
		{"an option beyond the end of one", unhex("07 123456 0003 0010 00000001 00000000 00000000 000d 0002"), ErrOption},
		{"a preference of two bytes", unhex("07 123456 0007 0002 0000"), ErrOption},
		{"a status of one", unhex("07 123456 000d 0001 00"), ErrOption},
	})
}

func FuzzDHCPv6(f *testing.F) {
	f.Add(dhcpv6Question)
	f.Add(dhcpv6Answer)
	f.Add(dhcpv6Solicit)
	f.Add(dhcpv6Offer)
	f.Add(dhcpv6NoneLeft)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDHCPv6(b)
		if err != nil {
			return
		}
		again := m.Append(nil)
		if m.Type == DHCPv6Reply || m.Type == DHCPv6Advertise {
			m.Elapsed = 0
		} else {
			m = DHCPv6{Type: m.Type, Transaction: m.Transaction, ClientID: m.ClientID, ServerID: m.ServerID, IA: m.IA, RapidCommit: m.RapidCommit, Elapsed: m.Elapsed}
		}
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
