package wire

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// dhcpv4Bytes returns a message from three parts: the header up to the hardware address; the zero-padded
// server name and boot file; and the options.
func dhcpv4Bytes(head, names, options string) []byte {
	b := append(unhex(head), make([]byte, 10)...) // the remaining bytes of chaddr
	names = strings.Join(strings.Fields(names), "")
	b = append(b, unhex(names+strings.Repeat("00", 192-len(names)/2))...)
	return append(b, unhex("63825363"+options)...)
}

var (
	// A DHCPDISCOVER captured from udhcpc, and the answer of dnsmasq.
	capturedDiscover = dhcpv4Bytes(
		"01 01 06 00 a739bb70 0000 0000 00000000 00000000 00000000 00000000 0e12036ec250", "",
		`35 01 01 39 02 0240 37 0a 0103060c0f1a1c2a7779 0c 05 6775657374
		 3c 0c 756468637020312e33352e30 3d 07 010e12036ec250 ff 00000000000000000000`)
	capturedOffer = dhcpv4Bytes(
		"02 01 06 00 a739bb70 0000 0000 00000000 0a000218 0a000202 00000000 0e12036ec250", "",
		`35 01 02 36 04 0a000202 33 04 00000e10 3a 04 00000708 3b 04 00000c4e 01 04 ffffff00 1c 04 0a0002ff
		 79 0d 00 0a000202 18 c0a807 0a000209 2a 04 0a000202 1a 02 0578
		 77 11 04 6c6f616d 04 74657374 00 03 656e67 c000 0f 09 6c6f616d2e74657374
		 06 08 0a000203 0a000204 03 04 0a000202 ff`)
)

// bare returns the shortest possible message that contains the given options.
func bare(options string) []byte {
	return dhcpv4Bytes("01 01 06 00 00000000 0000 0000 00000000 00000000 00000000 00000000 020000000001", "", options)
}

// sameDHCPv4 compares two messages by content: options may be in other fields and in pieces of other sizes.
func sameDHCPv4(a, b *DHCPv4) bool {
	x, y := *a, *b
	x.DHCPv4Options, y.DHCPv4Options = DHCPv4Options{}, DHCPv4Options{}
	if !reflect.DeepEqual(x, y) {
		return false
	}
	for code := range 256 {
		p, pok := a.Get(DHCPv4Option(code))
		q, qok := b.Get(DHCPv4Option(code))
		if pok != qok || !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

func TestDHCPv4OfACapturedOffer(t *testing.T) {
	m, err := ParseDHCPv4(capturedOffer)
	if err != nil {
		t.Fatal(err)
	}
	fixed := m
	fixed.DHCPv4Options = DHCPv4Options{}
	if want := (DHCPv4{
		Op: DHCPv4BootReply, XID: 0xa739bb70, YIAddr: addr("10.0.2.24"), SIAddr: addr("10.0.2.2"),
		CHAddr: mac("0e:12:03:6e:c2:50"),
	}); !reflect.DeepEqual(fixed, want) {
		t.Errorf("parsed %+v, want %+v", fixed, want)
	}
	// Each line compares an accessor with the configuration of dnsmasq.
	bits, _ := m.SubnetMask()
	lease, _ := m.LeaseTime()
	t1, _ := m.T1()
	t2, _ := m.T2()
	mtu, _ := m.MTU()
	for _, line := range []struct {
		name      string
		got, want any
	}{
		{"message type", m.MessageType(), DHCPv4Offer},
		{"server", m.ServerID(), addr("10.0.2.2")},
		{"lease time", lease, time.Hour},
		{"renewal time", t1, 30 * time.Minute},
		{"rebinding time", t2, 52*time.Minute + 30*time.Second},
		{"subnet mask", bits, 24},
		{"broadcast address", m.BroadcastAddr(), addr("10.0.2.255")},
		{"routers", m.Routers(), []netip.Addr{addr("10.0.2.2")}},
		{"name servers", m.DNS(), []netip.Addr{addr("10.0.2.3"), addr("10.0.2.4")}},
		{"time servers", m.NTP(), []netip.Addr{addr("10.0.2.2")}},
		{"MTU", mtu, 1400},
		{"domain", m.DomainName(), "loam.test"},
		{"search list", m.DomainSearch(), []DNSName{dnsName("loam.test"), dnsName("eng.loam.test")}},
		{"routes", m.ClasslessRoutes(), []DHCPv4Route{
			{netip.MustParsePrefix("0.0.0.0/0"), addr("10.0.2.2")},
			{netip.MustParsePrefix("192.168.7.0/24"), addr("10.0.2.9")},
		}},
		{"host name", m.HostName(), ""},
		{"requested address", m.RequestedIP(), netip.Addr{}},
	} {
		if !reflect.DeepEqual(line.got, line.want) {
			t.Errorf("%s: %v, want %v", line.name, line.got, line.want)
		}
	}
	b := make([]byte, m.Len())
	m.Put(b)
	if !bytes.Equal(b, capturedOffer) {
		t.Errorf("put % x, want % x", b, capturedOffer)
	}
}

func TestDHCPv4OfACapturedDiscover(t *testing.T) {
	m, err := ParseDHCPv4(capturedDiscover)
	if err != nil {
		t.Fatal(err)
	}
	if m.MessageType() != DHCPv4Discover || m.HostName() != "guest" || m.Broadcast || m.YIAddr.IsValid() {
		t.Errorf("parsed %+v", m)
	}
	if !bytes.Equal(m.ClientID(), unhex("01 0e12036ec250")) {
		t.Errorf("client identifier % x", m.ClientID())
	}
	if !bytes.Equal(m.ParameterRequestList(), unhex("0103060c0f1a1c2a7779")) {
		t.Errorf("parameter request list % x", m.ParameterRequestList())
	}
	if n, ok := m.MaxMessageSize(); n != 576 || !ok {
		t.Errorf("takes messages of %d bytes, %v; want 576", n, ok)
	}
	b := make([]byte, m.Len())
	m.Put(b)
	if len(b) != DHCPv4MinSent || !bytes.Equal(b, capturedDiscover) {
		t.Errorf("put % x, want % x", b, capturedDiscover)
	}
}

func TestDHCPv4RoundTrip(t *testing.T) {
	m := DHCPv4{
		Op: DHCPv4BootReply, Hops: 3, XID: 0xfffefdfc, Secs: 65535, Broadcast: true,
		CIAddr: addr("192.0.2.1"), YIAddr: addr("192.0.2.2"), SIAddr: addr("192.0.2.3"), GIAddr: addr("192.0.2.4"),
		CHAddr: MAC{1, 2, 3, 4, 5, 6}, ServerName: bytes.Repeat([]byte{'s'}, 64), BootFile: bytes.Repeat([]byte{'f'}, 128),
	}
	m.AddUint8(DHCPv4OptMessageType, uint8(DHCPv4Ack))
	m.AddAddrs(DHCPv4OptServerID, addr("192.0.2.3"))
	m.AddAddrs(DHCPv4OptDNS, addr("192.0.2.5"), addr("192.0.2.6"))
	m.AddDuration(DHCPv4OptLeaseTime, DHCPv4Infinite)
	m.AddDuration(DHCPv4OptT1, 90*time.Second)
	m.AddUint16(DHCPv4OptMTU, 68)
	m.AddSubnetMask(20)
	m.AddDomainSearch(dnsName("a.b"), dnsName("c"))
	m.Add(DHCPv4OptVendorClass, nil)
	routes := []DHCPv4Route{
		{netip.MustParsePrefix("0.0.0.0/0"), addr("192.0.2.254")},
		{netip.MustParsePrefix("10.17.0.0/16"), netip.Addr{}},
		{netip.MustParsePrefix("10.27.129.0/25"), addr("192.0.2.9")},
		{netip.MustParsePrefix("192.0.2.77/32"), addr("192.0.2.9")},
	}
	m.AddClasslessRoutes(routes...)
	b := bytes.Repeat([]byte{0xee}, m.Len())
	m.Put(b)
	got, err := ParseDHCPv4(b)
	if err != nil || !sameDHCPv4(&got, &m) {
		t.Fatalf("put and parsed: %+v, error %v; want %+v", got, err, m)
	}
	if lease, ok := got.LeaseTime(); !ok || lease != DHCPv4Infinite {
		t.Errorf("lease time %v, want no end", lease)
	}
	if !slices.Equal(got.ClasslessRoutes(), routes) {
		t.Errorf("routes %v, want %v", got.ClasslessRoutes(), routes)
	}
	if n, ok := got.SubnetMask(); n != 20 || !ok {
		t.Errorf("mask of %d bits, want 20", n)
	}
	if data, ok := got.Get(DHCPv4OptVendorClass); !ok || len(data) != 0 {
		t.Errorf("an empty option: % x, %v; want it to be there", data, ok)
	}
}

// The examples of RFC 3442, section "Classless Route Option Format".
func TestDHCPv4ClasslessRoutesOfTheRFC(t *testing.T) {
	for destination, want := range map[string]string{
		"00": "0.0.0.0/0", "08 0a": "10.0.0.0/8", "18 0a0000": "10.0.0.0/24", "10 0a11": "10.17.0.0/16",
		"18 0a1b81": "10.27.129.0/24", "19 0a e5 00 80": "10.229.0.128/25", "20 0ac67a2f": "10.198.122.47/32",
		"09 0aff": "10.128.0.0/9", // bits after the mask are ignored in the encoding
	} {
		data := append(unhex(destination), 192, 0, 2, 1)
		m, err := ParseDHCPv4(bare(fmt.Sprintf("350101 79 %02x %x", len(data), data)))
		route := DHCPv4Route{netip.MustParsePrefix(want), addr("192.0.2.1")}
		if got := m.ClasslessRoutes(); err != nil || len(got) != 1 || got[0] != route {
			t.Errorf("%s: %v, error %v; want %v", destination, got, err, route)
		}
	}
}

// RFC 3396: pieces of an option are joined in the order options field, boot file, server name. RFC 2132
// section 9.3 defines which of them hold options.
func TestDHCPv4OverloadAndPieces(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 60)
	sname := fmt.Sprintf("%-128s", "38 02 7576 00 38 02 7778 ff ee") // server name: 64 bytes
	sname = strings.Join(strings.Fields(sname), "")
	sname += strings.Repeat("00", 64-len(sname)/2)
	names := sname + "38 02 7374 0c 01 68 ff" // boot file
	for _, test := range []struct {
		overload   string
		want, host string
		boot       bool
	}{
		{"", "abcd", "", true},
		{"34 01 01", "abcdst", "h", false},
		{"34 01 02", "abcduvwx", "", true},
		{"34 01 03", "abcdstuvwx", "h", false},
	} {
		m, err := ParseDHCPv4(dhcpv4Bytes(
			"02 01 06 00 00000000 0000 0000 00000000 00000000 00000000 00000000 020000000001", names,
			"35 01 05 38 02 6162 00 00"+test.overload+"38 02 6364 ff 38 02 6566"))
		if err != nil {
			t.Errorf("overload %q: %v", test.overload, err)
			continue
		}
		if m.Message() != test.want || m.HostName() != test.host || (m.BootFile != nil) != test.boot {
			t.Errorf("overload %q: message %q, host %q, boot file %q; want %q, %q, %v",
				test.overload, m.Message(), m.HostName(), m.BootFile, test.want, test.host, test.boot)
		}
		m.Add(DHCPv4OptMessage, long)
		if got := m.Message(); got != test.want[:4]+string(long)+test.want[4:] {
			t.Errorf("after adding to it: %d bytes, %.20q...", len(got), got)
		}
		b := make([]byte, m.Len())
		m.Put(b)
		if again, err := ParseDHCPv4(b); err != nil || !sameDHCPv4(&again, &m) {
			t.Errorf("overload %q: put and parsed: %+v, error %v; want %+v", test.overload, again, err, m)
		}
	}
}

// Adding options to a parsed message does not change its input.
func TestDHCPv4AddDoesNotWriteIntoTheInput(t *testing.T) {
	b := bare("350101 38 01 61 ff 38 01 62 00000000")
	before := bytes.Clone(b)
	m, err := ParseDHCPv4(b)
	if err != nil {
		t.Fatal(err)
	}
	m.Add(DHCPv4OptMessage, []byte("more"))
	if m.Message() != "amore" || !bytes.Equal(b, before) {
		t.Errorf("message %q; the input is now % x", m.Message(), b)
	}
}

func TestDHCPv4WithoutEnd(t *testing.T) {
	if m, err := ParseDHCPv4(bare("350101 0c 02 6869")); err != nil || m.HostName() != "hi" {
		t.Errorf("host name %q, error %v; want hi: the end is forgiven", m.HostName(), err)
	}
}

func TestDHCPv4Refuses(t *testing.T) {
	good := bare("350101 ff")
	testRefusals(t, func(b []byte) error { _, err := ParseDHCPv4(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of the options", good[:DHCPv4MinLen-1], ErrShort},
		{"BOOTP with other vendor information", patch(good, 236, 0), ErrVersion},
		{"hardware that is not Ethernet", patch(good, 1, 32), ErrVersion},
		{"a hardware address of 16 bytes", patch(good, 2, 16), ErrLength},
		{"neither request nor reply", patch(good, 0, 3), ErrField},
		{"no options: plain BOOTP", bare("ff"), ErrField},
		{"message type 0", bare("350100 ff"), ErrField},
		{"message type behind the end", bare("ff 350101"), ErrField},
		{"a message type of two bytes", bare("35020101 ff"), ErrOption},
		{"two message types", bare("350101 350102 ff"), ErrOption},
		{"an option without its length", bare("350101 0c"), ErrOption},
		{"an option longer than the message", bare("350101 0c 02 61"), ErrOption},
		{"a server identifier of three bytes", bare("350101 36 03 010203 ff"), ErrOption},
		{"a requested address of five", bare("350101 32 05 0102030405 ff"), ErrOption},
		{"an empty lease time", bare("350101 33 00 ff"), ErrOption},
		{"a renewal time of two bytes", bare("350101 3a 02 0001 ff"), ErrOption},
		{"a rebinding time of eight", bare("350101 3b 08 0000000000000000 ff"), ErrOption},
		{"a subnet mask of one byte", bare("350101 01 01 18 ff"), ErrOption},
		{"a maximum size of four bytes", bare("350101 39 04 00000240 ff"), ErrOption},
		{"an empty overload", bare("350101 34 00 ff"), ErrOption},
		{"two overloads", bare("350101 34 01 01 34 01 01 ff"), ErrOption},
		{"overload 0", bare("350101 34 01 00 ff"), ErrField},
		{"overload 4", bare("350101 34 01 04 ff"), ErrField},
		{"a malformed option in the boot file", patch(bare("350101 34 01 01 ff"), 108+126, 12, 1), ErrOption},
		{"a malformed option in the server name", patch(bare("350101 34 01 02 ff"), 44, 12, 63), ErrOption},
	})
}

// An invalid option of optional configuration does not make the message invalid. It counts as absent.
func TestDHCPv4InvalidOptions(t *testing.T) {
	m, err := ParseDHCPv4(bare(`350101 03 03 010203 06 00 2a 05 0102030405 1c 02 0102 1a 02 0043 39 02 023f
		77 03 03 6161 79 05 21 01020304 3d 01 00 01 04 ff00ff00 32 04 00000000 0c 03 690000`))
	if err != nil {
		t.Fatal(err)
	}
	_, mask := m.SubnetMask()
	_, mtu := m.MTU()
	_, size := m.MaxMessageSize()
	_, lease := m.LeaseTime()
	if mask || mtu || size || lease {
		t.Errorf("mask %v, MTU %v, size %v, lease %v; want none", mask, mtu, size, lease)
	}
	if m.Routers() != nil || m.DNS() != nil || m.NTP() != nil || m.BroadcastAddr().IsValid() || m.RequestedIP().IsValid() {
		t.Error("addresses that are not there")
	}
	if m.DomainSearch() != nil || m.ClasslessRoutes() != nil || m.ClientID() != nil {
		t.Error("names, routes or an identifier that are not there")
	}
	if m.HostName() != "i" {
		t.Errorf("host name %q, want it without the zeros", m.HostName())
	}
}

func TestDHCPv4SubnetMasks(t *testing.T) {
	for n := range 33 {
		var m DHCPv4
		m.AddSubnetMask(n)
		if got, ok := m.SubnetMask(); got != n || !ok {
			t.Errorf("mask of %d bits came back as %d, %v", n, got, ok)
		}
	}
}

// A single message must not exhaust memory: 64 KiB of pointers to one long name would become 8 MB of names.
func TestDHCPv4DomainSearchIsBounded(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3) + "b"
	name := dnsName(long)
	data := name.AppendTo(nil)
	for range 1000 {
		data = append(data, 0xc0, 0)
	}
	var m DHCPv4
	m.Add(DHCPv4OptDomainSearch, data)
	if got := m.DomainSearch(); len(got) != MaxDomainSearch {
		t.Errorf("%d names, want %d", len(got), MaxDomainSearch)
	}
}

func FuzzDHCPv4(f *testing.F) {
	f.Add(capturedDiscover)
	f.Add(capturedOffer)
	f.Add(bare("350101 34 01 03 38 02 6162 38 02 6364"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDHCPv4(b)
		if err != nil {
			return
		}
		m.DomainSearch()
		m.ClasslessRoutes()
		m.SubnetMask()
		m.DNS()
		again := make([]byte, m.Len())
		m.Put(again)
		got, err := ParseDHCPv4(again)
		if err != nil || !sameDHCPv4(&got, &m) {
			t.Fatalf("%+v became %+v, error %v", m, got, err)
		}
	})
}
