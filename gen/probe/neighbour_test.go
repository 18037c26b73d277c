package probe

import (
	"bytes"
	"net/netip"
	"testing"

	"loam/wire"
)

// neighbourForm returns the form (the encoder and decoder of probes) for ARP requests and neighbor solicitations.
func neighbourForm(path Path) *form {
	return newForm(&Config{Path: path, Kind: Neighbour}, tagger{kind: Neighbour})
}

// Requests have the format of RFC 826 and RFC 4861.
func TestSolicitations(t *testing.T) {
	f := neighbourForm(path4)
	b := make([]byte, f.len())
	f.put(b, question{addr: netip.MustParseAddr("192.168.7.9")}, 0)
	eth, rest, err := wire.ParseEthernet(b)
	if err != nil || eth.Dst != wire.Broadcast || eth.Src != path4.SourceMAC || eth.Type != wire.TypeARP {
		t.Errorf("%+v, %v", eth, err)
	}
	arp, err := wire.ParseARP(rest)
	if err != nil || arp.Op != wire.ARPRequest || arp.SenderMAC != path4.SourceMAC || arp.SenderIP != path4.Source || arp.TargetIP.String() != "192.168.7.9" {
		t.Errorf("%+v, %v", arp, err)
	}
	f = neighbourForm(path6)
	b = make([]byte, f.len())
	target := netip.MustParseAddr("fd77::12:3456")
	f.put(b, question{addr: target}, 0)
	eth, rest, err = wire.ParseEthernet(b)
	if err != nil || eth.Dst != (wire.MAC{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}) || eth.Type != wire.TypeIPv6 {
		t.Errorf("%+v, %v", eth, err)
	}
	ip, body, err := wire.ParseIPv6(rest)
	if err != nil || ip.HopLimit != 255 || ip.Src != path6.Source || ip.Dst.String() != "ff02::1:ff12:3456" || !wire.ICMPv6ChecksumOK(body, ip.Src, ip.Dst) {
		t.Errorf("%+v, %v", ip, err)
	}
	if m, err := wire.ParseNeighbor(body); err != nil || m.Advertisement || m.Target != target || m.LinkAddr != path6.SourceMAC {
		t.Errorf("%+v, %v", m, err)
	}
}

// Only replies that are addressed to us count as answers. No frame causes a panic.
func TestAnswersOfNeighbours(t *testing.T) {
	f := neighbourForm(path4)
	reply := func(change func(*wire.ARP)) []byte {
		arp := wire.ARP{Op: wire.ARPReply, SenderMAC: wire.MAC{2, 0, 0, 0, 0, 9}, SenderIP: netip.MustParseAddr("192.168.7.9"), TargetMAC: path4.SourceMAC, TargetIP: path4.Source}
		change(&arp)
		b := make([]byte, wire.EthernetLen+wire.ARPLen)
		eth := wire.Ethernet{Dst: path4.SourceMAC, Src: arp.SenderMAC, Type: wire.TypeARP}
		eth.Put(b)
		arp.Put(b[wire.EthernetLen:])
		return b
	}
	good := reply(func(*wire.ARP) {})
	if r, v := f.read(good, 5); v != genuine || r.addr.String() != "192.168.7.9" || r.mac != (wire.MAC{2, 0, 0, 0, 0, 9}) || r.answer != Resolved || r.rtt != -1 {
		t.Errorf("%+v, %v", r, v)
	}
	for why, change := range map[string]func(*wire.ARP){
		"a request":         func(a *wire.ARP) { a.Op = wire.ARPRequest },
		"to another host":   func(a *wire.ARP) { a.TargetMAC[5]++ },
		"to another source": func(a *wire.ARP) { a.TargetIP = a.TargetIP.Next() },
		"of a group":        func(a *wire.ARP) { a.SenderMAC = wire.Broadcast },
	} {
		if _, v := f.read(reply(change), 5); v == genuine {
			t.Errorf("%s counts", why)
		}
	}
	for n := range good {
		if _, v := f.read(bytes.Clone(good[:n]), 5); v == genuine {
			t.Errorf("%d bytes count", n)
		}
	}
}

// With several source addresses, the prober uses each of them. An answer counts as forged if its destination is not
// the source address of the probe.
func TestQuestionsHaveTheirSource(t *testing.T) {
	path := path4
	path.More = []netip.Addr{netip.MustParseAddr("192.168.7.2"), netip.MustParseAddr("192.168.7.3")}
	c := config(t, Echo, "10.0.0.0/24")
	c.Path = path
	f := newForm(c, tagger{c.Key, Echo})
	h := host{t: t}
	used := map[netip.Addr]int{}
	for i := range uint64(256) {
		q := question{addr: c.Addresses.At(i)}
		b := make([]byte, f.len())
		f.put(b, q, 1)
		ip, _, err := wire.ParseIPv4(b[wire.EthernetLen:])
		if err != nil {
			t.Fatal(err)
		}
		used[ip.Src]++
		answer := h.reply(b)[0]
		if r, v := f.read(answer, 2); v != genuine || r.addr != q.addr {
			t.Fatalf("%+v, %v", r, v)
		}
		other := path.Sources()[(f.sourceOf(f.tags.tag(q))+1)%3].As4()
		copy(answer[wire.EthernetLen+ipv4Dst:], other[:])
		if _, v := f.read(answer, 2); v != forged {
			t.Fatalf("an answer to another source is %v", v)
		}
	}
	if len(used) != 3 || used[path.Source] < 40 {
		t.Errorf("%v", used)
	}
}
