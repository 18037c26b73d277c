package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// Messages encoded by hand from RFC 9776 sections 4.1 and 4.2, RFC 2236 section 2, RFC 1112 appendix I; RFC
// 9777 sections 5.1 and 5.2, RFC 2710 section 3. The queries and reports of both protocols have the same
// contents.
var (
	igmpv1Query   = unhex(`11 00 0000 00000000`)
	igmpv2Query   = unhex(`11 64 0000 ef010203`)
	igmpv3Query   = unhex(`11 8f 0000 ef010203 0a 8b 0002 c0000201 c0000202`)
	igmpv1Report  = unhex(`12 00 0000 ef010203`)
	igmpv2Report  = unhex(`16 00 0000 ef010203`)
	igmpv2Leave   = unhex(`17 00 0000 ef010203`)
	igmpv3Report  = unhex(`22 00 0000 0000 0002 04000000 ef010203 01000001 e0000005 c0000201`)
	mldv1Query    = unhex(`82 00 0000 2710 0000 ff020000000000000000000000000005`)
	mldv2Query    = unhex(`82 00 0000 8801 0000 ff020000000000000000000000000005 0a 8b 0001 20010db8000000000000000000000001`)
	mldv1Report   = unhex(`83 00 0000 0000 0000 ff020000000000000000000000000005`)
	mldv1Done     = unhex(`84 00 0000 0000 0000 ff020000000000000000000000000005`)
	mldv2Report   = unhex(`8f 00 0000 0000 0002 03000000 ff020000000000000000000000000005 01000001 ff0200000000000000000001ff000001 20010db8000000000000000000000001`)
	group4        = addr("239.1.2.3")
	group6        = addr("ff02::5")
	groupMessages = []struct {
		b    []byte
		want GroupMessage
	}{
		{igmpv1Query, GroupMessage{Kind: GroupQuery, Version: 1, Group: addr("0.0.0.0"), MaxDelay: 10 * time.Second}},
		{igmpv2Query, GroupMessage{Kind: GroupQuery, Version: 2, Group: group4, MaxDelay: 10 * time.Second}},
		{igmpv3Query, GroupMessage{
			Kind: GroupQuery, Version: 3, Group: group4, MaxDelay: 248 * tenth, Suppress: true, Robustness: 2, Interval: 216 * time.Second,
			Sources: []netip.Addr{addr("192.0.2.1"), addr("192.0.2.2")},
		}},
		{igmpv1Report, GroupMessage{Kind: GroupMember, Version: 1, Group: group4}},
		{igmpv2Report, GroupMessage{Kind: GroupMember, Version: 2, Group: group4}},
		{igmpv2Leave, GroupMessage{Kind: GroupLeave, Version: 2, Group: group4}},
		{igmpv3Report, GroupMessage{Kind: GroupReport, Version: 3, Records: []GroupRecord{
			{Type: ChangeToExclude, Group: group4},
			{Type: ModeIsInclude, Group: addr("224.0.0.5"), Sources: []netip.Addr{addr("192.0.2.1")}},
		}}},
		{mldv1Query, GroupMessage{Protocol: MLD, Kind: GroupQuery, Version: 1, Group: group6, MaxDelay: 10 * time.Second}},
		{mldv2Query, GroupMessage{
			Protocol: MLD, Kind: GroupQuery, Version: 2, Group: group6, MaxDelay: 49160 * time.Millisecond, Suppress: true, Robustness: 2,
			Interval: 216 * time.Second, Sources: []netip.Addr{addr("2001:db8::1")},
		}},
		{mldv1Report, GroupMessage{Protocol: MLD, Kind: GroupMember, Version: 1, Group: group6}},
		{mldv1Done, GroupMessage{Protocol: MLD, Kind: GroupLeave, Version: 1, Group: group6}},
		{mldv2Report, GroupMessage{Protocol: MLD, Kind: GroupReport, Version: 2, Records: []GroupRecord{
			{Type: ChangeToInclude, Group: group6},
			{Type: ModeIsInclude, Group: addr("ff02::1:ff00:1"), Sources: []netip.Addr{addr("2001:db8::1")}},
		}}},
	}
)

func TestGroupMessages(t *testing.T) {
	for _, c := range groupMessages {
		m, err := ParseGroupMessage(c.want.Protocol, c.b)
		if err != nil || !reflect.DeepEqual(m, c.want) {
			t.Errorf("% x is %+v, %v\nwant %+v", c.b, m, err, c.want)
			continue
		}
		b := bytes.Repeat([]byte{0xff}, m.Len())
		if m.Put(b); !bytes.Equal(b, c.b) {
			t.Errorf("put % x, want % x", b, c.b)
		}
		if !m.Protocol.Knows(c.b[0]) {
			t.Errorf("%v does not know type %d", m.Protocol, c.b[0])
		}
	}
	if IGMP.Knows(0x13) || MLD.Knows(128) {
		t.Error("DVMRP and echo are known")
	}
}

// RFC 9776 sections 4.1.10, 4.2.11 and 4.2.12: data after the fields of a message is for later versions, and is
// ignored.
func TestGroupMessagesWithMore(t *testing.T) {
	for _, c := range groupMessages {
		if c.want.Kind == GroupQuery && c.want.Version < c.want.Protocol.Newest() {
			continue // a longer query has the format of another version
		}
		if m, err := ParseGroupMessage(c.want.Protocol, append(bytes.Clone(c.b), 1, 2, 3)); err != nil || !reflect.DeepEqual(m, c.want) {
			t.Errorf("% x and more is %+v, %v\nwant %+v", c.b, m, err, c.want)
		}
	}
	aux := unhex(`22 00 0000 0000 0002 04010000 ef010203 ffffffff 03000000 e0000005`)
	m, err := ParseGroupMessage(IGMP, aux)
	if err != nil || len(m.Records) != 2 || m.Records[1].Group != addr("224.0.0.5") {
		t.Errorf("a record with auxiliary data: %+v, %v", m, err)
	}
}

func TestGroupMessagesRefused(t *testing.T) {
	for p, table := range map[GroupProtocol][]refusal{
		IGMP: {
			{"nothing", nil, ErrShort},
			{"half of one", igmpv2Query[:7], ErrShort},
			{"a type of another protocol", patch(igmpv2Query, 0, 0x13), ErrField},
			{"a query of a length that is no version's", igmpv3Query[:11], ErrLength},
			{"a query with sources beyond the end", igmpv3Query[:16], ErrLength},
			{"a query about an address that is no group", patch(igmpv2Query, 4, 10), ErrField},
			{"a query about sources of no group", patch(igmpv3Query, 4, 0, 0, 0, 0), ErrField},
			{"a report of an address that is no group", patch(igmpv2Report, 4, 10), ErrField},
			{"more records than there are", patch(igmpv3Report, 7, 3), ErrLength},
			{"a record without its group", igmpv3Report[:15], ErrLength},
			{"more sources than there are", patch(igmpv3Report, 19, 2), ErrLength},
			{"a record of an address that is no group", patch(igmpv3Report, 12, 10), ErrField},
			{"auxiliary data beyond the end", patch(igmpv3Report, 17, 1), ErrLength},
		},
		MLD: {
			{"half of one", mldv1Query[:23], ErrShort},
			{"a query of a length that is no version's", mldv2Query[:26], ErrLength},
			{"a query with sources beyond the end", mldv2Query[:43], ErrLength},
			{"a query about an address that is no group", patch(mldv1Query, 8, 0x20), ErrField},
			{"a record of an address that is no group", patch(mldv2Report, 12, 0x20), ErrField},
		},
	} {
		testRefusals(t, func(b []byte) error { _, err := ParseGroupMessage(p, b); return err }, table)
	}
}

// Times are encoded as RFC 9776 sections 4.1.1 and 8.8 and RFC 9777 section 5.1.3 define
// it.
func TestGroupCodes(t *testing.T) {
	for _, c := range []struct {
		width           int
		v, code, itself uint32
	}{
		{8, 0, 0, 0}, {8, 127, 127, 127}, {8, 128, 0x80, 128}, {8, 135, 0x80, 128}, {8, 136, 0x81, 136}, {8, 31744, 0xff, 31744}, {8, 1 << 20, 0xff, 31744},
		{16, 32767, 32767, 32767}, {16, 32768, 0x8000, 32768}, {16, 32775, 0x8000, 32768}, {16, 8387584, 0xffff, 8387584}, {16, 1 << 31, 0xffff, 8387584},
	} {
		if code := toCode(c.v, c.width); code != c.code || fromCode(code, c.width) != c.itself {
			t.Errorf("%d in %d bits is %#x, which is %d; want %#x, %d", c.v, c.width, code, fromCode(code, c.width), c.code, c.itself)
		}
	}
	for width := 8; width <= 16; width += 8 {
		for code := range uint32(1) << width {
			if again := toCode(fromCode(code, width), width); again != code {
				t.Fatalf("%#x in %d bits became %#x", code, width, again)
			}
		}
	}
}

func TestIGMPChecksum(t *testing.T) {
	b := bytes.Clone(igmpv3Report)
	PutIGMPChecksum(b)
	if !IGMPChecksumOK(b) || IGMPChecksumOK(patch(b, 9, 1)) {
		t.Errorf("% x", b)
	}
}

// MulticastMAC4 maps a group to the MAC address that RFC 1112 section 6.4 defines.
func TestMulticastMAC4(t *testing.T) {
	if got := MulticastMAC4(addr("239.129.2.3")); got != mac("01:00:5e:01:02:03") {
		t.Errorf("it is %v", got)
	}
}

func FuzzGroupMessage(f *testing.F) {
	for _, c := range groupMessages {
		f.Add(uint8(c.want.Protocol), c.b)
	}
	f.Fuzz(func(t *testing.T, protocol uint8, b []byte) {
		p := GroupProtocol(protocol % 2)
		m, err := ParseGroupMessage(p, b)
		if err != nil {
			return
		}
		again := make([]byte, m.Len())
		m.Put(again)
		if got, err := ParseGroupMessage(p, again); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
	})
}
