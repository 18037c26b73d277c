package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
)

// Messages encoded by hand from RFC 4861 sections 4.1, 4.2 and 4.6, RFC 4191 section 2 and RFC 8106 section
// 5.1.
var (
	routerSolicitation  = unhex(`85 00 0000 00000000 0101 02000000000b`)
	routerAdvertisement = unhex(`86 00 0000 40 c8 0708 00007530 000003e8
		0101 02000000000a
		0501 0000 000005dc
		0304 40c0 00015180 00003840 00000000 20010db8000000010000000000000000
		1801 0018 00000000
		1802 3008 00000708 20010db8000f0000
		1903 0000 000004b0 20010db8000000010000000000000053`)
)

var wholeAdvertisement = RouterAdvertisement{
	HopLimit: 64, Managed: true, Other: true, Preference: PreferHigh, Lifetime: 1800, ReachableTime: 30000, RetransTimer: 1000,
	LinkAddr: mac("02:00:00:00:00:0a"), MTU: 1500,
	Prefixes: []PrefixInfo{{Prefix: netip.MustParsePrefix("2001:db8:0:1::/64"), OnLink: true, Autonomous: true, Valid: 86400, Preferred: 14400}},
	Routes: []RouteInfo{
		{Prefix: netip.MustParsePrefix("::/0"), Preference: PreferLow},
		{Prefix: netip.MustParsePrefix("2001:db8:f::/48"), Preference: PreferHigh, Lifetime: 1800},
	},
	DNS: []DNSServers{{Servers: []netip.Addr{addr("2001:db8:0:1::53")}, Lifetime: 1200}},
}

func TestRouterSolicitation(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want RouterSolicitation
	}{
		{routerSolicitation, RouterSolicitation{mac("02:00:00:00:00:0b")}},
		{routerSolicitation[:RouterSolicitationLen], RouterSolicitation{}},
	} {
		s, err := ParseRouterSolicitation(c.b)
		if err != nil || s != c.want {
			t.Errorf("% x is %+v, %v; want %+v", c.b, s, err, c.want)
		}
		b := make([]byte, s.Len())
		if s.Put(b); !bytes.Equal(b, c.b) {
			t.Errorf("put % x, want % x", b, c.b)
		}
	}
}

func TestRouterAdvertisement(t *testing.T) {
	advertisement := routerAdvertisement
	a, err := ParseRouterAdvertisement(advertisement)
	if err != nil || !reflect.DeepEqual(a, wholeAdvertisement) {
		t.Fatalf("it is %+v, %v\nwant %+v", a, err, wholeAdvertisement)
	}
	b := bytes.Repeat([]byte{0xff}, a.Len())
	if a.Put(b); !bytes.Equal(b, advertisement) {
		t.Errorf("put % x\nwant % x", b, advertisement)
	}
}

// An invalid option counts as absent; the rest of the message is used.
func TestRouterAdvertisementSkips(t *testing.T) {
	head := routerAdvertisement[:RouterAdvertisementLen]
	for name, option := range map[string]string{
		"an option that nobody knows":            `fd01 000000000000`,
		"a prefix of 129 bits":                   `0304 81c0 00015180 00003840 00000000 20010db8000000010000000000000000`,
		"a prefix option that is too short":      `0303 40c0 00015180 00003840 00000000 20010db800000001`,
		"a route of 65 bits in 64":               `1802 4100 00000708 20010db8000f0000`,
		"a route of the preference without name": `1802 3010 00000708 20010db8000f0000`,
		"a route option that is too long":        `1804 3000 00000708 20010db8000f0000 0000000000000000 0000000000000000`,
		"no name server":                         `1901 0000 000004b0`,
		"half a name server":                     `1902 0000 000004b0 20010db800000001`,
		"a link address of another size":         `0102 02000000000a 0000000000000000`,
		"a link address of a group of stations":  `0101 03000000000a`,
	} {
		b := append(bytes.Clone(head), unhex(option)...)
		a, err := ParseRouterAdvertisement(append(b, unhex(`0501 0000 00000500`)...))
		if err != nil || a.MTU != 1280 || a.Prefixes != nil || a.Routes != nil || a.DNS != nil || !a.LinkAddr.IsZero() {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if a, err := ParseRouterAdvertisement(patch(head, 5, 0x10)); err != nil || a.Preference != PreferMedium {
		t.Errorf("the preference without name (RFC 4191 section 2.2): %v, %v", a.Preference, err)
	}
}

// RFC 4861 section 6.1: messages that a node must ignore.
func TestRouterMessagesRefuse(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, err := ParseRouterAdvertisement(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"half of one", routerAdvertisement[:15], ErrShort},
		{"a code", patch(routerAdvertisement, 1, 1), ErrField},
		{"another message", routerSolicitation, ErrField},
		{"an option without length", patch(routerAdvertisement, 17, 0), ErrOption},
		{"an option beyond the end", routerAdvertisement[:len(routerAdvertisement)-8], ErrOption},
	})
	testRefusals(t, func(b []byte) error { _, err := ParseRouterSolicitation(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"a code", patch(routerSolicitation, 1, 1), ErrField},
		{"another message", routerAdvertisement, ErrField},
		{"an option without length", patch(routerSolicitation, 9, 0), ErrOption},
	})
}

func FuzzRouterAdvertisement(f *testing.F) {
	f.Add(routerAdvertisement)
	f.Add(routerAdvertisement[:RouterAdvertisementLen])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseRouterAdvertisement(b)
		if err != nil {
			return
		}
		again := make([]byte, a.Len())
		a.Put(again)
		if got, err := ParseRouterAdvertisement(again); err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("%+v became %+v, %v", a, got, err)
		}
	})
}

func FuzzRouterSolicitation(f *testing.F) {
	f.Add(routerSolicitation)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseRouterSolicitation(b)
		if err != nil {
			return
		}
		again := make([]byte, s.Len())
		s.Put(again)
		if got, err := ParseRouterSolicitation(again); err != nil || got != s {
			t.Fatalf("%+v became %+v, %v", s, got, err)
		}
	})
}
