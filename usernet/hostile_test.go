package usernet

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"loam/link"
	"loam/link/pipe"
	"loam/wire"
)

// Guests without a stack: frames made by hand, sent as fast as the gateway accepts them.
// Each test ends with closing the gateway and a check for leaks: see checkLeaks.

// rawGuest is the far end of the gateway's link.
type rawGuest struct {
	*Gateway
	t      *testing.T
	device link.Device
	mac    wire.MAC // MAC address of the gateway
}

func newRawGuest(t *testing.T, medium link.Medium, c Config) *rawGuest {
	t.Helper()
	checkLeaks(t)
	near, far := pipe.New(pipe.Config{Medium: medium})
	c.Device = near
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		far.Close()
	})
	return &rawGuest{g, t, far, near.Info().MAC}
}

// send sends a frame when there is room.
func (r *rawGuest) send(f *link.Frame) {
	r.t.Helper()
	q := r.device.Queues()[0]
	for {
		n, err := q.Send([]*link.Frame{f})
		if err != nil {
			r.t.Fatal(err)
		}
		if n == 1 {
			return
		}
		<-q.Room()
	}
}

// sendIP sends a packet.
func (r *rawGuest) sendIP(proto wire.Protocol, src, dst netip.Addr, f *link.Frame) {
	r.t.Helper()
	h := wire.IPv4{TTL: 64, Protocol: proto, Src: src, Dst: dst, PayloadLen: f.Len()}
	h.Put(f.Prepend(h.Len()))
	if r.device.Info().Medium == link.Ethernet {
		h := wire.Ethernet{Dst: r.mac, Src: r.device.Info().MAC, Type: wire.TypeIPv4}
		h.Put(f.Prepend(h.Len()))
	}
	r.send(f)
}

func (r *rawGuest) sendUDP(src, dst netip.AddrPort, payload []byte) {
	r.t.Helper()
	f := link.NewFrame(len(payload))
	copy(f.Bytes(), payload)
	h := wire.UDP{SrcPort: src.Port(), DstPort: dst.Port(), PayloadLen: len(payload)}
	h.Put(f.Prepend(h.Len()))
	wire.PutUDPChecksum(f.Bytes(), src.Addr(), dst.Addr())
	r.sendIP(wire.ProtoUDP, src.Addr(), dst.Addr(), f)
}

func (r *rawGuest) sendSYN(src, dst netip.AddrPort) {
	r.t.Helper()
	f := link.NewFrame(0)
	h := wire.TCP{SrcPort: src.Port(), DstPort: dst.Port(), Seq: 1, Flags: wire.SYN, Window: 1000}
	h.Put(f.Prepend(h.Len()))
	wire.PutTCPChecksum(f.Bytes(), src.Addr(), dst.Addr())
	r.sendIP(wire.ProtoTCP, src.Addr(), dst.Addr(), f)
}

// discard reads and frees frames until the link is closed.
func (r *rawGuest) discard() {
	frames := make([]*link.Frame, link.BatchSize)
	for {
		n, err := r.device.Queues()[0].Recv(frames)
		link.FreeAll(frames[:n])
		if err != nil {
			return
		}
	}
}

// wantPong pings the gateway and waits for the reply, to check that it still works.
func (r *rawGuest) wantPong() {
	r.t.Helper()
	f := link.NewFrame(wire.ICMPv4Len)
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(7, 7)}.Put(f.Bytes())
	wire.PutICMPv4Checksum(f.Bytes())
	r.sendIP(wire.ProtoICMP, guestAddr, r.config.Gateway, f)
	frames := make([]*link.Frame, 1)
	for {
		if _, err := r.device.Queues()[0].Recv(frames); err != nil {
			r.t.Fatal(err)
		}
		h, payload, err := wire.ParseIPv4(frames[0].Bytes())
		pong := err == nil && h.Protocol == wire.ProtoICMP && payload[0] == byte(wire.ICMPv4EchoReply)
		frames[0].Free()
		if pong {
			return
		}
	}
}

var guestAddr = netip.MustParseAddr("10.0.2.15")

// anywhere returns an address derived from i.
func anywhere(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 2, byte(20 + i%200)}), uint16(1024+i))
}

// A guest sends SYNs to many addresses, at which a host's server accepts, and completes no handshake.
func TestHostileSYNFlood(t *testing.T) {
	const limit, flood = 8, 2000
	c := loopback()
	c.Limits.Connections = limit
	r := newRawGuest(t, link.IP, c)
	l := listen(t)
	accepted := make(chan struct{}, flood) // one token for each connection that the host accepts
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			defer c.Close()
		}
	}()
	go r.discard()
	for i := range flood {
		r.sendSYN(anywhere(i), gatewayPort(l.Addr()))
	}
	eventually(t, "SYNs are still being decided", func() bool {
		c := r.Counters()
		return c.Get(TCPConnected) == limit && c.Get(TCPAttempts) == c.Get(TCPLimit)+limit
	})
	if n := len(accepted); n > limit {
		t.Errorf("the host has %d connections, the limit is %d", n, limit)
	}
	l.Close()
	r.Close()
	<-done
}

// A guest sends datagrams between many pairs of addresses.
func TestHostileUDPFlood(t *testing.T) {
	const limit, flood = 16, 2000
	c := loopback()
	c.Limits.Flows = limit
	r := newRawGuest(t, link.IP, c)
	host := listenUDP(t)
	sockets := openDescriptors(t)
	go r.discard()
	for i := range flood {
		r.sendUDP(anywhere(i), gatewayPort(host.LocalAddr()), []byte("x"))
		if n := r.flows.len(); n > limit {
			t.Fatalf("there are %d flows, the limit is %d", n, limit)
		}
	}
	eventually(t, "flows are missing", func() bool { return r.flows.len() == limit })
	eventually(t, "sockets of flows that were ended are left", func() bool { return openDescriptors(t) <= sockets+2*limit })
}

// A guest that sends but never receives keeps the link full. On an Ethernet link it does
// not even answer ARP.
func TestHostileGuestThatReceivesNothing(t *testing.T) {
	for medium, name := range map[link.Medium]string{link.IP: "IP", link.Ethernet: "Ethernet"} {
		t.Run(name, func(t *testing.T) {
			const flood = 5000
			c := loopback()
			c.Limits.Flows = 4
			r := newRawGuest(t, medium, c)
			host := listenUDP(t)
			go func() { // sends ten replies to each datagram
				buf := make([]byte, 2048)
				for {
					n, from, err := host.ReadFromUDPAddrPort(buf)
					if err != nil {
						return
					}
					for range 10 {
						host.WriteToUDPAddrPort(buf[:n], from)
					}
				}
			}()
			payload := make([]byte, 1000)
			most := 0
			for i := range flood {
				r.sendUDP(netip.AddrPortFrom(guestAddr, uint16(1024+i%16)), gatewayPort(host.LocalAddr()), payload)
				most = max(most, link.Outstanding())
			}
			// Two full links of 256 frames, the frames held by four flows and by flows
			// being closed, and packets waiting for resolution.
			if bound := 256*2 + 20*2*guestDatagrams/2048 + 256; most > bound {
				t.Errorf("%d frames were held at once, want at most %d", most, bound)
			}
			host.Close()
		})
	}
}

// Malformed input at every layer is counted and does no harm.
func TestHostileRubbish(t *testing.T) {
	r := newRawGuest(t, link.IP, Config{Resolvers: []netip.AddrPort{refusedPort(t)}})
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	from := netip.AddrPortFrom(guestAddr, 68)
	services := []netip.AddrPort{
		netip.AddrPortFrom(r.config.DNS, 53), netip.AddrPortFrom(r.config.Gateway, 67),
		netip.AddrPortFrom(limitedBroadcast, 67), netip.AddrPortFrom(r.config.Gateway, 9),
	}
	for i := range 500 {
		f := link.NewFrame(random.IntN(200))
		copy(f.Bytes(), noise(f.Len()))
		r.send(f)
		r.sendUDP(from, services[i%len(services)], noise(random.IntN(400)))
		for proto := range wire.Protocol(18) {
			f := link.NewFrame(random.IntN(64))
			copy(f.Bytes(), noise(f.Len()))
			r.sendIP(proto, guestAddr, r.config.Gateway, f)
		}
		if i%10 == 0 {
			r.wantPong()
		}
	}
	r.wantPong()
	eventually(t, "nothing malformed is counted", func() bool {
		c := r.Counters()
		return c.Get(DHCPMalformed) > 0 && c.Get(DNSMalformed) > 0
	})
}
