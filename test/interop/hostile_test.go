//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"loam/stack"
	"loam/wire"
)

// TestHostileNeighbour attacks Loam from the link, as fast as a raw socket can: with SYNs from hosts
// that do not exist, resets in the kernel's name, overlapping fragments, and noise. It checks that a
// stream between Loam and the kernel arrives complete in both directions, that memory stays bounded,
// and that the attack is counted.
func TestHostileNeighbour(t *testing.T) {
	l := newLab(t, setup{})
	l.meet()
	size := scale(128, quickSize) << 20
	client, server := l.connect(l.directions()[1])
	ln, err := l.loam.listen("tcp", l.loam.at(0))
	l.must(err)
	defer ln.Close()
	before := heap()
	a := &attacker{
		lab:    l,
		rng:    rand.New(rand.NewPCG(4, 2)),
		open:   ln.Addr().(*net.TCPAddr).AddrPort().Port(),
		victim: server.LocalAddr().(*net.TCPAddr).AddrPort(),
		friend: client.LocalAddr().(*net.TCPAddr).AddrPort(),
	}
	ctx, stop := context.WithCancel(l.ctx)
	done := make(chan int, 1) // the attacker sends the number of frames, once
	go func() { done <- a.attack(ctx) }()
	l.exchange("under attack", client, server, size)
	c, err := l.linux.dial(l.ctx, "tcp", ln.Addr().String()) // a client that is not part of the attack can still connect
	l.must(err)
	defer c.Close()
	stop()
	l.Logf("%d hostile frames", <-done)
	if grown := int(heap()) - int(before); grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	// The frames of the attack are counted where they are dropped. The stack processes some of them
	// after the last was sent, so the test waits.
	for _, k := range []stack.Counter{stack.TCPNoPort, stack.TCPCookiesSent, stack.IPReassembly, stack.IPMalformed, stack.TCPMalformed, stack.EthUnknownType} {
		l.eventually(k.String()+" is counted", func() bool {
			c := l.stack.Counters()
			return c.Get(k) > 0
		})
	}
}

// heap returns the bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// attacker is a malicious host on the link.
type attacker struct {
	*lab
	rng            *rand.Rand
	open           uint16         // a port of the victim with a listener
	victim, friend netip.AddrPort // the connection that it tries to reset
}

// attack sends frames until the context ends or their number is reached, and returns the number. The
// number is limited: if Loam is slow, as with the race detector, an endless attack would fill the link
// and leave no room for the stream, which is not the stack's fault.
func (a *attacker) attack(ctx context.Context) (n int) {
	ifc, err := net.InterfaceByName(a.tap)
	if err != nil {
		a.Error(err)
		return 0
	}
	s, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		a.Error(err)
		return 0
	}
	defer syscall.Close(s)
	eth := wire.Ethernet{Dst: a.ifc.Device().Info().MAC, Src: wire.MAC{2, 0, 0, 0, 6, 66}, Type: wire.TypeIPv4}
	kinds := []func() []byte{a.syn, a.reset, a.fragment, a.noise}
	for most := scale(200_000, 20_000); ctx.Err() == nil && n < most; n++ {
		packet := kinds[n%len(kinds)]()
		if n%64 == 63 {
			eth.Type = wire.EtherType(0x8888) // an unused protocol
		} else {
			eth.Type = wire.TypeIPv4
		}
		frame := make([]byte, eth.Len()+len(packet))
		eth.Put(frame)
		copy(frame[eth.Len():], packet)
		err := syscall.Sendto(s, frame, 0, &syscall.SockaddrLinklayer{Ifindex: ifc.Index})
		if err != nil && err != syscall.ENOBUFS {
			a.Error(err)
			return n
		}
	}
	return n
}

// stranger returns an address of the link that no host has.
func (a *attacker) stranger() netip.Addr {
	ip := a.linux.addr.As4()
	ip[3] = byte(10 + a.rng.IntN(200))
	return netip.AddrFrom4(ip)
}

// packet returns an IPv4 packet with the payload.
func (a *attacker) packet(h wire.IPv4, payload []byte) []byte {
	h.TTL, h.Dst, h.PayloadLen = 64, a.victim.Addr(), len(payload)
	b := make([]byte, h.Len(), h.Len()+len(payload))
	h.Put(b)
	return append(b, payload...)
}

func (a *attacker) tcp(h wire.TCP, src netip.Addr) []byte {
	b := make([]byte, h.Len())
	h.Put(b)
	wire.PutTCPChecksum(b, src, a.victim.Addr())
	return a.packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: src}, b)
}

// syn returns a SYN of a connection that will not be completed.
func (a *attacker) syn() []byte {
	port := a.open
	if a.rng.IntN(8) == 0 {
		port = a.victim.Port() // a port that is closed for other hosts
	}
	h := wire.TCP{SrcPort: uint16(a.rng.Uint32()), DstPort: port, Seq: a.rng.Uint32(), Flags: wire.SYN, Window: 1000}
	return a.tcp(h, a.stranger())
}

// reset returns a RST with a guessed sequence number.
func (a *attacker) reset() []byte {
	h := wire.TCP{SrcPort: a.friend.Port(), DstPort: a.victim.Port(), Seq: a.rng.Uint32(), Flags: wire.RST}
	return a.tcp(h, a.friend.Addr())
}

// fragment returns a fragment of one of a few datagrams. The fragments overlap and are never complete.
func (a *attacker) fragment() []byte {
	h := wire.IPv4{Protocol: wire.ProtoUDP, Src: a.stranger(), ID: uint16(a.rng.IntN(4)), MoreFragment: true, FragOffset: 8 * a.rng.IntN(100)}
	return a.packet(h, block[:8*(1+a.rng.IntN(100))])
}

// noise returns a packet with a damaged header, or random bytes.
func (a *attacker) noise() []byte {
	b := a.syn()
	switch a.rng.IntN(3) {
	case 0:
		b[0] = byte(a.rng.Uint32()) // version and header length
	case 1:
		b[20+12] = byte(a.rng.IntN(5)) << 4 // length of the TCP header, which is too short; the checksum is correct nevertheless
		h, segment, err := wire.ParseIPv4(b)
		if err == nil {
			binary.BigEndian.PutUint16(segment[16:], 0)
			wire.PutTCPChecksum(segment, h.Src, h.Dst)
		}
	default:
		at := a.rng.IntN(1000)
		copy(b, block[at:])
	}
	return b
}
