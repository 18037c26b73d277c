package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"

	"loam/wire"
)

// examples contains every layer, alone and inside others. The tests of checksums, allocations and tshark and the
// fuzz tests use all of them.
var examples = []string{
	"eth",
	"eth dst=ff:ff:ff:ff:ff:ff; arp",
	"eth; arp op=2 spa=192.0.2.7 sha=02:00:00:00:00:07",
	"eth; ip; payload fill=count",
	"eth; ip; icmp type=8 id=7 seq=1+1; payload text=\"hello, world\"",
	"eth src=02:00:00:00:01:00+1; ip src=10.0.0.0/8 dst=random:10.1.0.0/16 ttl=1-255 dscp=random ecn=random id=random; udp sport=1024-65535 dport=53,123,443",
	"eth; ip df=0 id=1+1; tcp sport=random:1024-65535 seq=random window=1000-2000+10 flags=SA ack=random",
	"eth; ip6 src=2001:db8::/32 dst=random:2001:db8:1::/48 flow=random dscp=0-63; udp sport=random:1024-2047",
	"eth; ip6; icmp6 id=1-100 seq=random; payload fill=random",
	"eth; ip6 src=2001:db8::1,2001:db8::2; tcp flags=A seq=1000+1460; payload fill=0xa5",
	"eth; vlan id=100-199 pcp=random; ip; udp; payload text=tagged",
	"eth; qinq id=10-12; vlan id=random:1-4094 dei=0,1; ip6; udp",
	"eth; mpls label=random:16-1000 tc=random; mpls label=17 ttl=9; ip dst=198.51.100.0/24; udp",
	"eth; mpls; ip6; tcp",
	"eth; ip; udp sport=random:49152-65535; vxlan vni=1-5000; eth src=02:00:00:00:00:09; vlan id=7; ip src=10.0.0.1+3; udp dport=1-100; payload fill=count",
	"eth; ip6; udp; vxlan; eth; ip6 src=random:2001:db8::/64; tcp seq=random",
	"eth; ip; gre; ip dst=203.0.113.0/24; icmp id=random",
	"eth; ip; gre checksum=auto key=1+1 seq=0+1; eth; ip; udp sport=1+1",
	"eth; ip6; gre key=5; mpls; ip; tcp",
	"eth; ip; ip6; udp sport=random",
	"eth; ip6; ip; tcp window=random",
	"eth; ip src=10.0.0.0/8; sctp sport=random:1024-65535 tag=random; sctpdata tsn=1+1 seq=random; payload fill=count",
	"eth; vlan; ip6 src=random:2001:db8::/32; sctp tag=7; sctpdata ppid=46",
	"eth; ip; sctp; payload hex=0e000004",
	"eth; ip; udp sport=9899; sctp tag=random; sctpdata; payload text=encapsulated",
}

func compile(t testing.TB, text string, o Options) *Program {
	t.Helper()
	tm, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	p, err := Compile(tm, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func sizes(t testing.TB, s string) Sizes {
	t.Helper()
	z, err := ParseSizes(s)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Every length and every checksum in a frame is correct, for all fields and sizes.
func TestLengthsAndChecksumsAreRight(t *testing.T) {
	for _, text := range examples {
		for _, size := range []string{"natural", "256-301", "imix:200=3,1000=2,1518=1", "random:180-1518"} {
			o := Options{Seed: 3}
			if size != "natural" {
				o.Sizes = sizes(t, size)
			}
			p := compile(t, text, o)
			f := p.Filler(0, 1)
			slot := bytes.Repeat([]byte{0xee}, p.MaxLen()) // old content, as in a ring slot that is reused
			for i := range 300 {
				n := f.Next(slot)
				if n < MinSize-FCSLen || n > len(slot) {
					t.Fatalf("%s, size %s: frame of %d bytes", text, size, n)
				}
				if err := verifyEthernet(slot[:n]); err != nil {
					t.Fatalf("%s, size %s, frame %d: %v\n% x", text, size, i, err, slot[:n])
				}
			}
		}
	}
}

var errSum = errors.New("bad checksum")

func verifyEthernet(b []byte) error {
	h, payload, err := wire.ParseEthernet(b)
	if err != nil {
		return err
	}
	return verifyType(h.Type, payload)
}

func verifyType(typ wire.EtherType, b []byte) error {
	switch typ {
	case wire.TypeARP:
		_, err := wire.ParseARP(b)
		return err
	case wire.TypeIPv4:
		return verifyIPv4(b)
	case wire.TypeIPv6:
		return verifyIPv6(b)
	case wire.TypeTEB:
		return verifyEthernet(b)
	case wire.TypeMPLS:
		h, rest, err := wire.ParseMPLS(b)
		if err != nil || !h.BottomOfStack {
			return errors.Join(err, verifyType(typ, rest))
		}
		if rest[0]>>4 == 6 {
			return verifyIPv6(rest)
		}
		return verifyIPv4(rest)
	case typeTest:
		return nil
	}
	return fmt.Errorf("unknown type %#x", typ)
}

func verifyIPv4(b []byte) error {
	h, payload, err := wire.ParseIPv4(b)
	if err != nil {
		return err
	}
	if !wire.IPv4ChecksumOK(b) {
		return fmt.Errorf("IPv4: %w", errSum)
	}
	return verifyTransport(h.Protocol, h.Src, h.Dst, payload)
}

func verifyIPv6(b []byte) error {
	h, payload, err := wire.ParseIPv6(b)
	if err != nil {
		return err
	}
	return verifyTransport(h.NextHeader, h.Src, h.Dst, payload)
}

func verifyTransport(proto wire.Protocol, src, dst netip.Addr, b []byte) error {
	ok := true
	switch proto {
	case wire.ProtoUDP:
		h, payload, err := wire.ParseUDP(b)
		if err != nil || h.NoChecksum || !wire.UDPChecksumOK(b, src, dst) {
			return fmt.Errorf("UDP: %v, %+v, or a bad checksum", err, h)
		}
		if len(payload) != len(b)-wire.UDPLen {
			return fmt.Errorf("UDP says %d bytes, IP %d", len(payload), len(b)-wire.UDPLen)
		}
		if h.DstPort == SCTPPort {
			return verifySCTP(payload)
		}
		if h.DstPort == wire.VXLANPort {
			_, inner, err := wire.ParseVXLAN(payload)
			return errors.Join(err, verifyEthernet(inner))
		}
	case wire.ProtoTCP:
		ok = wire.TCPChecksumOK(b, src, dst)
	case wire.ProtoICMP:
		ok = wire.ICMPv4ChecksumOK(b)
	case wire.ProtoICMPv6:
		ok = wire.ICMPv6ChecksumOK(b, src, dst)
	case wire.ProtoGRE:
		h, payload, err := wire.ParseGRE(b)
		if err != nil || !wire.GREChecksumOK(b) {
			return fmt.Errorf("GRE: %v, or a bad checksum", err)
		}
		return verifyType(h.Type, payload)
	case protoIPv4:
		return verifyIPv4(b)
	case protoIPv6:
		return verifyIPv6(b)
	case protoSCTP:
		return verifySCTP(b)
	}
	if !ok {
		return fmt.Errorf("protocol %d: %w", proto, errSum)
	}
	return nil
}

// verifySCTP checks the CRC of an SCTP packet, and the length of its DATA chunk if it has one.
func verifySCTP(b []byte) error {
	sum := binary.LittleEndian.Uint32(b[8:])
	zeroed := bytes.Clone(b)
	clear(zeroed[8:12])
	if got := crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli)); got != sum {
		return fmt.Errorf("SCTP: %w: %x, want %x", errSum, sum, got)
	}
	if chunk := b[SCTPLen:]; chunk[0] == 0 && (int(binary.BigEndian.Uint16(chunk[2:])) != len(chunk) || len(chunk)%4 != 0) {
		return fmt.Errorf("SCTP says a chunk of % x, in %d bytes", chunk[2:4], len(chunk))
	}
	return nil
}

// Seal computes the CRC over the bytes that the caller has written into the payload, and corrects the UDP checksum,
// which covers these bytes.
func TestSealCoversTheReservedBytes(t *testing.T) {
	for _, text := range []string{"eth; ip; sctp; sctpdata", "eth; ip; udp; sctp; sctpdata tsn=1+1"} {
		p := compile(t, text, Options{Reserve: 18})
		slot := make([]byte, p.MaxLen())
		f := p.Filler(0, 1)
		for range 3 {
			n := f.Next(slot)
			copy(f.Body(slot), "\x12\x34\xed\xcb") // these bytes sum to 0, so the UDP checksum stays the same
			f.Seal(slot)
			if err := verifyEthernet(slot[:n]); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestFillingAllocatesNothing(t *testing.T) {
	for _, text := range examples {
		p := compile(t, text, Options{Sizes: sizes(t, "imix:200=7,594=4,1518=1")})
		f := p.Filler(0, 1)
		slot := make([]byte, p.MaxLen())
		if n := testing.AllocsPerRun(100, func() { f.Next(slot) }); n != 0 {
			t.Errorf("%s: %v allocations a frame", text, n)
		}
	}
}

// fieldsOf returns the first n values of a field of type uint64, read back from the frames at the offsets of the
// table.
func fieldsOf(t *testing.T, p *Program, shard, shards, n, at, size int) (all []uint64) {
	f := p.Filler(shard, shards)
	slot := make([]byte, p.MaxLen())
	for range n {
		f.Next(slot)
		v := uint64(0)
		for _, b := range slot[at : at+size] {
			v = v<<8 | uint64(b)
		}
		all = append(all, v)
	}
	return all
}

func TestPatterns(t *testing.T) {
	const sport, src = 34, 26
	for _, test := range []struct {
		text     string
		at, size int
		want     string
	}{
		{"udp sport=53", sport, 2, "[53 53 53 53 53 53 53]"},
		{"udp sport=0x10-18", sport, 2, "[16 17 18 16 17 18 16]"},
		{"udp sport=10-15+2", sport, 2, "[10 12 14 10 12 14 10]"},
		{"udp sport=9,7,8", sport, 2, "[9 7 8 9 7 8 9]"},
		{"udp sport=65534+1", sport, 2, "[65534 65535 0 1 2 3 4]"},
		{"udp sport=5+65535", sport, 2, "[5 4 3 2 1 0 65535]"},
	} {
		p := compile(t, "eth; ip; "+test.text, Options{})
		if got := fmt.Sprint(fieldsOf(t, p, 0, 1, 7, test.at, test.size)); got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
	p := compile(t, "eth; ip src=10.0.0.6/30; udp", Options{})
	got := fieldsOf(t, p, 0, 1, 5, src, 4)
	if want := "[a000004 a000005 a000006 a000007 a000004]"; fmt.Sprintf("%x", got) != want {
		t.Errorf("a prefix cycles over %x, want %s", got, want)
	}
}

// Random values are in their set, differ from each other, and are the same for the same seed.
func TestRandomIsReproducible(t *testing.T) {
	const text = "eth; ip; udp sport=random:1000-1999 dport=random:5,6,7"
	one := fieldsOf(t, compile(t, text, Options{Seed: 1}), 0, 1, 1000, 34, 2)
	again := fieldsOf(t, compile(t, text, Options{Seed: 1}), 0, 1, 1000, 34, 2)
	other := fieldsOf(t, compile(t, text, Options{Seed: 2}), 0, 1, 1000, 34, 2)
	if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
		t.Error("the same seed must make the same frames, and another seed others")
	}
	seen := map[uint64]bool{}
	for _, v := range one {
		if v < 1000 || v > 1999 {
			t.Fatalf("%d is outside of the range", v)
		}
		seen[v] = true
	}
	if len(seen) < 500 {
		t.Errorf("1000 draws of 1000 values gave only %d of them", len(seen))
	}
}

// Several queues together send the same values as a single queue. In one cycle through the values of a field, each
// value occurs once.
func TestShardsShareTheCycle(t *testing.T) {
	p := compile(t, "eth; ip; udp sport=100-111", Options{})
	count := map[uint64]int{}
	for shard := range 3 {
		for _, v := range fieldsOf(t, p, shard, 3, 8, 34, 2) {
			count[v]++
		}
	}
	for port := uint64(100); port <= 111; port++ {
		if count[port] != 2 {
			t.Errorf("port %d came %d times in two rounds of three shards", port, count[port])
		}
	}
}

// Given values are sent unchanged, even if they are wrong.
func TestGivenFieldsAreNotComputed(t *testing.T) {
	p := compile(t, "eth type=0x1234; ip checksum=0xbeef len=7 proto=99; udp checksum=0 len=9", Options{})
	slot := make([]byte, p.MaxLen())
	b := slot[:p.Filler(0, 1).Next(slot)]
	for at, want := range map[int]string{12: "1234", 24: "beef", 16: "0007", 23: "63", 40: "0000", 38: "0009"} {
		if got := fmt.Sprintf("%x", b[at:at+len(want)/2]); got != want {
			t.Errorf("at %d stands %s, want %s", at, got, want)
		}
	}
}

// With Skip, a method whose kernel writes the headers gets only the bytes after them.
func TestSkippedHeaders(t *testing.T) {
	const text = "eth; ip; udp sport=1-9; payload fill=count"
	o := Options{Sizes: FixedSize(100)}
	whole := compile(t, text, o)
	slot := make([]byte, whole.MaxLen())
	want := bytes.Clone(slot[:whole.Filler(0, 1).Next(slot)])
	o.Skip = wire.EthernetLen
	packet := compile(t, text, o)
	got := slot[:packet.Filler(0, 1).Next(slot)]
	if !bytes.Equal(got, want[o.Skip:]) || packet.MaxLen() != 100-FCSLen-14 || packet.Payload() != 28 {
		t.Errorf("% x\nwant % x", got, want[o.Skip:])
	}
	if f := packet.Filler(0, 1); f.WireLen(f.Next(slot)) != 100 {
		t.Error("the size on the wire counts what the kernel writes")
	}
	o.Skip = 42
	tm, _ := Parse(text)
	if _, err := Compile(tm, o); err == nil || !strings.Contains(err.Error(), "udp.sport") {
		t.Errorf("a field that changes in front of what is written: %v", err)
	}
}

func TestBodyIsWhatTheCallerMayWrite(t *testing.T) {
	p := compile(t, "eth; ip; udp; payload fill=0xff", Options{Sizes: FixedSize(64), Reserve: 18})
	slot := make([]byte, p.MaxLen())
	f := p.Filler(0, 1)
	f.Next(slot)
	if b := f.Body(slot); len(b) != 18 || !bytes.Equal(b, make([]byte, 18)) {
		t.Errorf("the body of the smallest UDP frame is % x, want 18 zeros", b)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"eth; ip; udp", "eth; ip src=10.0.0.0/8; udp sport=random", "eth; ip; udp; vxlan; eth; ip6 src=random; tcp seq=1+1"} {
		b.Run(text, func(b *testing.B) {
			tm, _ := Parse(text)
			p, err := Compile(tm, Options{Sizes: FixedSize(146)})
			if err != nil {
				b.Fatal(err)
			}
			f, slot := p.Filler(0, 1), make([]byte, p.MaxLen())
			for b.Loop() {
				f.Next(slot)
			}
		})
	}
}
