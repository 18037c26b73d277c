package link_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"loam/link"
	"loam/link/linktest"
	"loam/wire"
)

// packet is a TCP or UDP packet decoded by package wire, which Segment does not use. IPv6 is
// decoded here.
type packet struct {
	v6       bool
	id       uint16
	protocol wire.Protocol
	tcp      wire.TCP
	payload  []byte
	header   int // size of all headers in bytes
}

// dissect decodes a finished frame and checks its headers and checksums.
func dissect(t *testing.T, m link.Medium, f *link.Frame) (p packet) {
	t.Helper()
	if f.Offload != (link.Offload{}) {
		t.Fatalf("not finished: %+v", f.Offload)
	}
	b := f.Bytes()
	if m == link.Ethernet {
		_, rest, err := wire.ParseEthernet(b)
		if err != nil {
			t.Fatalf("Ethernet: %v", err)
		}
		b = rest
	}
	if p.v6 = b[0]>>4 == 6; p.v6 {
		dissect6(t, &p, b)
	} else {
		dissect4(t, &p, b)
	}
	p.header = f.Len() - len(p.payload)
	return p
}

func dissect4(t *testing.T, p *packet, b []byte) {
	t.Helper()
	h, rest, err := wire.ParseIPv4(b)
	if err != nil || !wire.IPv4ChecksumOK(b) || len(rest) != len(b)-h.Len() {
		t.Fatalf("IPv4 header %+v: %v", h, err)
	}
	p.id, p.protocol = h.ID, h.Protocol
	if p.protocol == wire.ProtoTCP {
		p.tcp, p.payload, err = wire.ParseTCP(rest)
		if err != nil || !wire.TCPChecksumOK(rest, h.Src, h.Dst) {
			t.Fatalf("TCP: %v, or a bad checksum", err)
		}
		return
	}
	u, payload, err := wire.ParseUDP(rest)
	if err != nil || u.NoChecksum || !wire.UDPChecksumOK(rest, h.Src, h.Dst) || u.PayloadLen != len(payload) {
		t.Fatalf("UDP %+v: %v, or a bad checksum", u, err)
	}
	p.payload = payload
}

func dissect6(t *testing.T, p *packet, b []byte) {
	t.Helper()
	rest := b[40:]
	if int(binary.BigEndian.Uint16(b[4:])) != len(rest) {
		t.Fatalf("IPv6 payload length %d, want %d", binary.BigEndian.Uint16(b[4:]), len(rest))
	}
	p.protocol = wire.Protocol(b[6])
	pseudo := wire.Sum(b[8:40], uint16(p.protocol))
	if wire.Sum(rest, wire.AddSums(pseudo, uint16(len(rest)))) != 0xffff {
		t.Fatal("bad checksum over IPv6")
	}
	var err error
	if p.protocol == wire.ProtoTCP {
		p.tcp, p.payload, err = wire.ParseTCP(rest)
	} else {
		_, p.payload, err = wire.ParseUDP(rest)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// segment cuts f into segments and returns them in order. The parameter places is the
// number of segments that each call of Segment has room for.
func segment(t *testing.T, m link.Medium, f *link.Frame, places int) []*link.Frame {
	t.Helper()
	var all []*link.Frame
	dst := make([]*link.Frame, places)
	for {
		n, ok := link.Segment(m, f, dst)
		if !ok {
			t.Fatalf("refused: %+v", f.Offload)
		}
		all = append(all, dst[:n]...)
		if f.GSO == link.GSONone {
			return append(all, f)
		}
		if n == 0 {
			t.Fatal("no progress")
		}
	}
}

func TestSegment(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	for name, c := range map[string]linktest.Transport{
		"TCP4":             {Protocol: wire.ProtoTCP, Payload: 10_000, GSOSize: 1448},
		"TCP4 whole":       {Protocol: wire.ProtoTCP, Payload: 14_480, GSOSize: 1448},
		"TCP4 one segment": {Protocol: wire.ProtoTCP, Payload: 500, GSOSize: 1448},
		"TCP4 odd sizes":   {Protocol: wire.ProtoTCP, Payload: 1001, GSOSize: 7},
		"TCP4 largest":     {Protocol: wire.ProtoTCP, Payload: 65_495, GSOSize: 536},
		"TCP6":             {Protocol: wire.ProtoTCP, IPv6: true, Payload: 65_000, GSOSize: 1428},
		"UDP4":             {Protocol: wire.ProtoUDP, Payload: 60_000, GSOSize: 1200},
		"UDP6":             {Protocol: wire.ProtoUDP, IPv6: true, Payload: 6001, GSOSize: 1200},
	} {
		for _, m := range []link.Medium{link.Ethernet, link.IP} {
			for _, places := range []int{1, 7, link.BatchSize} {
				checkSegments(t, name, m, c, places)
			}
		}
	}
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

func checkSegments(t *testing.T, name string, m link.Medium, c linktest.Transport, places int) {
	t.Helper()
	f := linktest.Unfinished(m, c)
	want := bytes.Clone(f.Bytes()[f.HeaderLen:])
	segments, wireLen := f.Segments(), f.WireLen()
	all := segment(t, m, f, places)
	var got []byte
	total := 0
	for i, s := range all {
		p := dissect(t, m, s)
		last := i == len(all)-1
		if len(p.payload) != c.GSOSize && !last || len(p.payload) == 0 {
			t.Errorf("%s: segment %d has %d bytes, want %d", name, i, len(p.payload), c.GSOSize)
		}
		if !c.IPv6 && p.id != 77+uint16(i) {
			t.Errorf("%s: segment %d has id %d, want %d", name, i, p.id, 77+i)
		}
		if p.protocol == wire.ProtoTCP {
			if p.tcp.Seq != 1000+uint32(len(got)) || p.tcp.Ack != 2000 || p.tcp.Window != 512 {
				t.Errorf("%s: segment %d: %+v", name, i, p.tcp)
			}
			if p.tcp.Flags.Has(wire.PSH) != last {
				t.Errorf("%s: segment %d of %d has flags %v", name, i, len(all), p.tcp.Flags)
			}
		}
		got = append(got, p.payload...)
		total += s.Len()
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the payload differs", name)
	}
	if len(all) != segments || total != wireLen {
		t.Errorf("%s: %d segments, %d bytes; Segments and WireLen said %d, %d", name, len(all), total, segments, wireLen)
	}
	link.FreeAll(all)
}

// CWR is sent once if the frame is marked ECN. Otherwise every segment carries it, because it is
// then part of the ACE counter of RFC 9768.
func TestSegmentCWR(t *testing.T) {
	for _, ecn := range []bool{true, false} {
		f := linktest.Unfinished(link.IP, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 3000, GSOSize: 1000, ECN: true})
		f.ECN = ecn
		for i, s := range segment(t, link.IP, f, 8) {
			if got, want := dissect(t, link.IP, s).tcp.Flags.Has(wire.CWR), i == 0 || !ecn; got != want {
				t.Errorf("ECN %v: segment %d has CWR %v", ecn, i, got)
			}
			s.Free()
		}
	}
}

// VLAN tags and IP options are copied to every segment.
func TestSegmentKeepsTagsAndOptions(t *testing.T) {
	const payload = 2500
	f := link.NewFrame(14 + 8 + 24 + 20 + payload)
	b := f.Bytes()
	eth := wire.Ethernet{Dst: wire.Broadcast, Type: wire.TypeIPv4, Tags: [2]wire.VLAN{{TPID: wire.TypeQinQ, TCI: 5}, {TPID: wire.TypeVLAN, TCI: 6}}}
	eth.Put(b)
	ip := wire.IPv4{TTL: 3, Protocol: wire.ProtoTCP, Src: addr(1), Dst: addr(2), Options: []byte{148, 4, 0, 0}, PayloadLen: 20 + payload}
	ip.Put(b[22:])
	tcp := wire.TCP{SrcPort: 1, DstPort: 2, Flags: wire.ACK | wire.FIN}
	tcp.Put(b[46:])
	f.Offload = link.Offload{NeedsChecksum: true, GSO: link.GSOTCP4, GSOSize: 1000, HeaderLen: 66, CsumStart: 46, CsumOffset: 16}
	all := segment(t, link.Ethernet, f, 8)
	for i, s := range all {
		if p := dissect(t, link.Ethernet, s); p.tcp.Flags.Has(wire.FIN) != (i == 2) {
			t.Errorf("segment %d has flags %v", i, p.tcp.Flags)
		}
		if h, _, _ := wire.ParseEthernet(s.Bytes()); h != eth {
			t.Errorf("segment %d has the Ethernet header %+v", i, h)
		}
		if h, _, _ := wire.ParseIPv4(s.Bytes()[22:]); !bytes.Equal(h.Options, ip.Options) {
			t.Errorf("segment %d has the options %v", i, h.Options)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d segments, want 3", len(all))
	}
	link.FreeAll(all)
}

// A frame whose headers do not match its metadata is left unchanged.
func TestSegmentRefuses(t *testing.T) {
	for name, damage := range map[string]func(f *link.Frame){
		"no size":       func(f *link.Frame) { f.GSOSize = 0 },
		"wrong type":    func(f *link.Frame) { f.GSO = link.GSOUDP },
		"wrong version": func(f *link.Frame) { f.GSO = link.GSOTCP6 },
		"unknown type":  func(f *link.Frame) { f.GSO = 2 },
		"a fragment":    func(f *link.Frame) { f.Bytes()[14+6] = 0x20 },
		"a short IP":    func(f *link.Frame) { f.Bytes()[14+3]-- },
		"no IP":         func(f *link.Frame) { f.Bytes()[12] = 0 },
		"an IP option":  func(f *link.Frame) { f.Bytes()[14] = 0x4f },
		"a TCP offset":  func(f *link.Frame) { f.Bytes()[14+20+12] = 0x40 },
		"cut off":       func(f *link.Frame) { f.Resize(40) },
	} {
		f := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 3000, GSOSize: 1000})
		damage(f)
		before, offload := bytes.Clone(f.Bytes()), f.Offload
		if n, ok := link.Segment(link.Ethernet, f, make([]*link.Frame, 4)); n != 0 || ok {
			t.Errorf("%s: Segment = %d, %v", name, n, ok)
		}
		if !bytes.Equal(f.Bytes(), before) || f.Offload != offload {
			t.Errorf("%s: the frame was changed", name)
		}
		if f.Admit(link.Ethernet) {
			t.Errorf("%s: Admit let it in", name)
		}
		f.Free()
	}
}

func TestFinishChecksum(t *testing.T) {
	for _, c := range []linktest.Transport{
		{Protocol: wire.ProtoTCP, Payload: 1000},
		{Protocol: wire.ProtoTCP, IPv6: true, Payload: 1},
		{Protocol: wire.ProtoUDP, Payload: 999},
	} {
		f := linktest.Unfinished(link.Ethernet, c)
		if !f.FinishChecksum() {
			t.Errorf("%+v: refused", c)
		}
		dissect(t, link.Ethernet, f)
		f.Free()
	}
	f := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoUDP})
	defer f.Free()
	f.CsumOffset = 7
	f.CsumStart = uint16(f.Len() - 8)
	if f.FinishChecksum() {
		t.Error("a field outside of the frame")
	}
}

// A UDP checksum of zero is sent as all ones (RFC 768).
func TestZeroUDPChecksum(t *testing.T) {
	f := linktest.Unfinished(link.IP, linktest.Transport{Protocol: wire.ProtoUDP, Payload: 2})
	defer f.Free()
	b := f.Bytes()
	b[28], b[29] = 0, 0
	binary.BigEndian.PutUint16(b[28:], ^wire.Sum(b[20:], 0)) // makes the sum 0xffff, so that the checksum is 0
	if !f.FinishChecksum() || binary.BigEndian.Uint16(b[26:]) != 0xffff {
		t.Errorf("checksum %#x, want 0xffff", binary.BigEndian.Uint16(b[26:]))
	}
}

// Admit corrects fields of Offload that a sender may set imprecisely, such as HeaderLen.
func TestAdmit(t *testing.T) {
	gso := linktest.Transport{Protocol: wire.ProtoTCP, Payload: 3000, GSOSize: 1000}
	f := linktest.Unfinished(link.Ethernet, gso)
	want := f.Offload
	f.HeaderLen = 200 // as a kernel may set it: the number of bytes in the first buffer
	if !f.Admit(link.Ethernet) || f.Offload != want {
		t.Errorf("a vague header length: %+v, want %+v", f.Offload, want)
	}
	f.CsumStart--
	if f.Admit(link.Ethernet) {
		t.Error("a checksum that starts elsewhere")
	}
	f.Free()

	f = linktest.Unfinished(link.Ethernet, gso)
	f.GSOSize = 3000
	if !f.Admit(link.Ethernet) || f.GSO != link.GSONone || !f.NeedsChecksum {
		t.Errorf("a GSO frame of one segment: %+v", f.Offload)
	}
	f.CsumStart = 20
	if f.Admit(link.Ethernet) {
		t.Error("a checksum that starts in the IP header")
	}
	f.Free()
}

func TestSegmentAllocates(t *testing.T) {
	dst := make([]*link.Frame, link.BatchSize)
	frame := func() *link.Frame {
		return linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 60_000, GSOSize: 1448})
	}
	allocs(t, func() {
		f := frame()
		n, _ := link.Segment(link.Ethernet, f, dst)
		link.FreeAll(dst[:n])
		f.Free()
	})
}

func BenchmarkSegment(b *testing.B) {
	dst := make([]*link.Frame, link.BatchSize)
	model := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 65_160, GSOSize: 1448})
	b.SetBytes(65_160)
	b.ReportAllocs()
	for b.Loop() {
		f := link.NewFrame(model.Len())
		copy(f.Bytes(), model.Bytes()[:model.HeaderLen])
		f.Offload = model.Offload
		n, _ := link.Segment(link.Ethernet, f, dst)
		link.FreeAll(dst[:n])
		f.Free()
	}
}

// FuzzSegment checks that for any headers and metadata, Segment neither panics nor loses a byte.
func FuzzSegment(f *testing.F) {
	for _, c := range []linktest.Transport{
		{Protocol: wire.ProtoTCP, Payload: 3000, GSOSize: 1000},
		{Protocol: wire.ProtoTCP, IPv6: true, Payload: 300, GSOSize: 100},
		{Protocol: wire.ProtoUDP, Payload: 300, GSOSize: 100},
	} {
		for _, m := range []link.Medium{link.Ethernet, link.IP} {
			frame := linktest.Unfinished(m, c)
			f.Add(uint8(m), uint8(frame.GSO), frame.GSOSize, frame.Bytes())
			frame.Free()
		}
	}
	f.Fuzz(func(t *testing.T, medium, gso uint8, size uint16, b []byte) {
		if len(b) > link.MaxFrame {
			return
		}
		link.Track(true)
		defer link.Track(false)
		m := link.Medium(medium & 1)
		frame := link.NewFrame(len(b))
		copy(frame.Bytes(), b)
		frame.Offload = link.Offload{NeedsChecksum: true, GSO: link.GSOType(gso), GSOSize: size}
		dst := make([]*link.Frame, 3)
		for {
			n, ok := link.Segment(m, frame, dst)
			for _, s := range dst[:n] {
				if s.Offload != (link.Offload{}) {
					t.Fatal("an unfinished segment")
				}
			}
			link.FreeAll(dst[:n])
			if !ok || frame.GSO == link.GSONone {
				break
			}
			if n == 0 {
				t.Fatal("no progress")
			}
		}
		frame.Free()
		if n := link.Outstanding(); n != 0 {
			t.Fatalf("%d frames are leaked", n)
		}
	})
}
