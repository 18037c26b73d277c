package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
	"loam/wire"
)

// FuzzReceive sends arbitrary frames to a stack with sockets of every kind. For all
// contents, nothing panics, nothing leaks, and a new client is served afterwards.
//
// The input is a sequence of frames. Each frame follows a two-byte length, whose top bits
// request repairs so that the fuzzer gets past the checksums:
//
//	0x8000  prepend the Ethernet header, which the input then lacks
//	0x4000  correct the checksums of the IP header and of the transport header
func FuzzReceive(f *testing.F) {
	for _, seed := range receiveSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) { receiveAll(t, input) })
	})
}

const (
	mendEthernet = 0x8000
	mendSums     = 0x4000
	mendLength   = 0x07ff
)

func receiveAll(t *testing.T, input []byte) {
	link.Track(true)
	ring.Track(true)
	s := stack.New(stack.Config{Shards: 2, MaxReassembly: 1 << 20})
	s.Forward(stack.Forwarder{
		TCP:  func(r *stack.TCPRequest) { r.Accept(stack.TCPOptions{}) },
		UDP:  func(c *stack.UDPConn) { c.Close() },
		Ping: func(r *stack.PingRequest) { r.Reply() },
	})
	w := attachPeer(t, s, pipe.Config{}, stack.InterfaceConfig{AcceptAny: true, NoDetection: true}).introduce()
	l := mustListen(t, s, 80, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 100)
				for {
					n, err := c.Read(buf)
					if err != nil {
						c.Close()
						return
					}
					c.Write(buf[:n])
				}
			}()
		}
	}()
	udp := mustUDP(t, s, 53)
	udp.JoinGroup(address("224.0.0.251"), nil)
	connected := mustUDP(t, s, 1000)
	mustConnect(t, connected, "10.0.0.2:1000")
	ping, err := s.ListenPing(netip.Addr{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	d := startDial(s, "tcp", "10.0.0.2:5000")
	for len(input) >= 2 {
		head := binary.BigEndian.Uint16(input)
		n := min(int(head&mendLength), len(input)-2)
		if b := mend(head, input[2:2+n]); len(b) >= wire.EthernetLen && len(b) <= 1500+wire.EthernetLen {
			w.send(b)
		}
		input = input[2+n:]
	}
	w.advance(time.Minute)
	w.forget()
	if !w.serves() {
		t.Error("an honest stranger is not served any more")
	}
	s.Close()
	<-d.done
	udp.Close()
	connected.Close()
	ping.Close()
}

// serves reports whether the stack still echoes the data of a new client. The client's
// port cannot occur in the input.
func (w *peer) serves() bool {
	p := w.tcp(uint16(20000+rand.IntN(40000)), 80)
	p.send(wire.SYN, "")
	f := p.find("")
	if f == nil || f.tcp.Flags != wire.SYN|wire.ACK {
		return false
	}
	p.expect = f.tcp.Seq + 1
	p.send(wire.ACK, "hello")
	return p.find("hello") != nil
}

// find returns the segment of this connection that carries the given data.
func (p *tcpPeer) find(data string) *seen {
	for f := p.w.next(); f != nil; f = p.w.next() {
		if f.tcp != nil && f.tcp.DstPort == p.local.Port() && string(f.data) == data {
			return f
		}
	}
	return nil
}

// mend repairs a frame as the top bits of head request: see FuzzReceive.
func mend(head uint16, frame []byte) []byte {
	b := append([]byte(nil), frame...)
	if head&mendEthernet != 0 {
		b = ethernet(macA, wire.TypeIPv4, b)
	}
	if head&mendSums == 0 || len(b) < wire.EthernetLen+wire.IPv4MinLen {
		return b
	}
	ip := b[wire.EthernetLen:]
	headerLen := int(ip[0]&0xf) * 4
	if headerLen < wire.IPv4MinLen || headerLen > len(ip) {
		return b
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	ip[0] = 4<<4 | ip[0]&0xf
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^wire.Sum(ip[:headerLen], 0))
	mendTransport(wire.Protocol(ip[9]), netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:])), ip[headerLen:])
	return b
}

func mendTransport(proto wire.Protocol, src, dst netip.Addr, b []byte) {
	switch {
	case proto == wire.ProtoTCP && len(b) >= wire.TCPMinLen:
		b[16], b[17] = 0, 0
		wire.PutTCPChecksum(b, src, dst)
	case proto == wire.ProtoUDP && len(b) >= wire.UDPLen:
		b[6], b[7] = 0, 0
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		wire.PutUDPChecksum(b, src, dst)
	case proto == wire.ProtoICMP && len(b) >= wire.ICMPv4Len:
		b[2], b[3] = 0, 0
		wire.PutICMPv4Checksum(b)
	case proto == wire.ProtoIGMP && len(b) >= 8:
		b[2], b[3] = 0, 0
		wire.PutIGMPChecksum(b)
	}
}

// receiveSeeds returns sequences of frames of every kind that the stack supports.
func receiveSeeds() [][]byte {
	one := func(head uint16, b []byte) []byte {
		return append(binary.BigEndian.AppendUint16(nil, head|uint16(len(b))), b...)
	}
	ip := func(h wire.IPv4, b []byte) []byte { return one(mendEthernet|mendSums, packet(h, b)) }
	tcp := func(h wire.TCP, data string) []byte {
		return ip(wire.IPv4{Protocol: wire.ProtoTCP}, segment(h, addrB, addrA, data))
	}
	udp := func(from, to uint16) []byte {
		return ip(wire.IPv4{Protocol: wire.ProtoUDP}, datagram(netip.AddrPortFrom(addrB, from), netip.AddrPortFrom(addrA, to), "hello"))
	}
	arp := make([]byte, wire.ARPLen)
	(&wire.ARP{Op: wire.ARPRequest, SenderMAC: macB, SenderIP: addrB, TargetIP: addrA}).Put(arp)
	syn := wire.TCP{SrcPort: 6000, DstPort: 80, Seq: 1, Flags: wire.SYN, Window: 1000}
	syn.MSS, syn.HasTimestamps, syn.SACKPermitted, syn.HasWindowScale = 1460, true, true, true
	payload, _ := bigDatagram(addrA)
	join := func(frames ...[]byte) (all []byte) {
		for _, f := range frames {
			all = append(all, f...)
		}
		return all
	}
	fragments := wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}
	echo := ip(wire.IPv4{Protocol: wire.ProtoICMP}, message(wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: 7 << 16}, []byte("data")))
	reply := ip(wire.IPv4{Protocol: wire.ProtoICMP}, message(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: 7 << 16}, []byte("data")))
	quote := packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: addrA, Dst: addrB},
		datagram(netip.AddrPortFrom(addrA, 1000), netip.AddrPortFrom(addrB, 1000), "x"))
	return [][]byte{
		one(0, ethernet(wire.Broadcast, wire.TypeARP, arp)),
		join(udp(1000, 53), udp(1000, 1000), udp(1000, 9), udp(68, 67), udp(67, 68)),
		join(echo, reply),
		ip(wire.IPv4{Protocol: wire.ProtoICMP}, message(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: 3}, quote)),
		join(tcp(syn, ""), tcp(wire.TCP{SrcPort: 6000, DstPort: 80, Seq: 2, Ack: 1, Flags: wire.ACK, Window: 100}, "data")),
		join(tcp(syn, ""), tcp(wire.TCP{SrcPort: 6000, DstPort: 80, Seq: 2, Flags: wire.RST}, "")),
		tcp(wire.TCP{SrcPort: 5000, DstPort: 40000, Seq: 2, Ack: 1, Flags: wire.SYN | wire.ACK}, ""),
		join(one(mendEthernet|mendSums, fragment(fragments, payload, 0, 1000)), one(mendEthernet|mendSums, fragment(fragments, payload, 1000, 2000)), one(mendEthernet|mendSums, fragment(fragments, payload, 2000, 3000))),
		ip(wire.IPv4{Protocol: wire.ProtoIGMP, Dst: allSystems, Options: []byte{148, 4, 0, 0}}, []byte{0x11, 100, 0, 0, 0, 0, 0, 0}),
		ip(wire.IPv4{Protocol: 132, Options: []byte{148, 4, 0, 0}}, make([]byte, 30)),
		ip(wire.IPv4{Protocol: wire.ProtoTCP, Dst: worldServer}, segment(syn, addrB, worldServer, "")),
		ip(wire.IPv4{Protocol: wire.ProtoUDP, Dst: worldServer}, datagram(netip.AddrPortFrom(addrB, 1), netip.AddrPortFrom(worldServer, 1), "x")),
	}
}
