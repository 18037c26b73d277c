package stack_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
	"loam/stack/timer"
	"loam/wire"
)

// A peer is a host that a test plays by hand: it writes and reads the frames at the other
// end of a pipe itself, in fake time. Its methods are
//
//	send      put a frame on the wire
//	want      the next frame has this content, now
//	wantNone  nothing is on the wire now
//	advance   let time pass
//
// and each expectation takes the sentence of the RFC that it checks. The content of a frame is written
// as in seen.String:
//
//	arp who-has 10.0.0.2 tell 10.0.0.1
//	arp 10.0.0.1 is-at 02:00:00:00:00:0a
//	icmp 10.0.0.1 > 10.0.0.2 type 3 code 3
//	udp 10.0.0.1:53 > 10.0.0.2:1000 "hello"
//	tcp 10.0.0.1:80 > 10.0.0.2:1000 SA
//	ip 10.0.0.1 > 10.0.0.2 protocol 17 offset 1480 length 28
//	nd who-has 2001:db8::2 from 2001:db8::1 at 02:00:00:00:00:0a
//	nd 2001:db8::1 is-at 02:00:00:00:00:0a to 2001:db8::2 SO
//	icmp6 2001:db8::1 > 2001:db8::2 type 1 code 4
//	IGMP v3 10.0.0.1 > 224.0.0.22 TO_EX 239.1.2.3
//
// TCP connections have methods of their own: tcppeer_test.go.
type peer struct {
	t       testing.TB
	s       *stack.Stack
	ifc     *stack.Interface
	dev     *pipe.Device // the far end of the stack's device
	queue   link.Queue
	arps    bool          // ARP is visible to the test; otherwise both hosts are already resolved
	groups  bool          // IGMP and MLD are visible to the test
	out     []*link.Frame // frames held back: see hold
	holding bool

	mu      sync.Mutex    // guards the fields below
	frames  [][]byte      // frames that the stack has sent and the test has not examined yet
	stopped chan struct{} // closed by start; nil: the peer is reading
}

// MAC addresses of the stack and of the peer.
var (
	macA = wire.MAC{2, 0, 0, 0, 0, 0xa}
	macB = wire.MAC{2, 0, 0, 0, 0, 0xb}
)

// byHand runs a script in fake time: a stack at 10.0.0.1/24 whose only neighbour is the
// peer, at 10.0.0.2 and any other address that the script uses.
func byHand(t *testing.T, script func(t *testing.T, w *peer)) {
	t.Helper()
	byHandOn(t, pipe.Config{}, script)
}

// byHandOn is like byHand, but the pipe has the given configuration.
func byHandOn(t *testing.T, p pipe.Config, script func(t *testing.T, w *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script(t, newPeer(t, stack.Config{Shards: 1}, p))
	})
}

// newPeer creates a stack and its peer. It must be called inside a synctest bubble.
func newPeer(t *testing.T, c stack.Config, p pipe.Config) *peer {
	t.Helper()
	return newBarePeer(t, c, p).introduce()
}

// introduce adds the stack's address, and lets each host learn the other's link-layer address.
func (w *peer) introduce() *peer {
	w.t.Helper()
	if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA, 24)); err != nil {
		w.t.Fatal(err)
	}
	w.ifc.SetNeighbour(addrB, macB)
	w.advance(5 * time.Second) // waits until the address has been announced
	w.forget()
	return w
}

// newBarePeer is like newPeer, but gives the stack no address.
func newBarePeer(t *testing.T, c stack.Config, p pipe.Config) *peer {
	t.Helper()
	link.Track(true)
	ring.Track(true)
	return attachPeer(t, stack.New(c), p, stack.InterfaceConfig{NoIPv6: true})
}

// attachPeer connects a stack with a peer, and checks at the end of the test that nothing
// has leaked.
func attachPeer(t *testing.T, s *stack.Stack, p pipe.Config, c stack.InterfaceConfig) *peer {
	t.Helper()
	near, far := pipe.New(p)
	return attachPeerBy(t, s, near, far, c)
}

// attachPeerBy is like attachPeer, but for an existing pipe. The stack's end may be wrapped.
func attachPeerBy(t *testing.T, s *stack.Stack, near link.Device, far *pipe.Device, c stack.InterfaceConfig) *peer {
	t.Helper()
	c.Name = "eth0"
	w := &peer{t: t, s: s, dev: far, queue: far.Queues()[0]}
	var err error
	if w.ifc, err = s.Attach(near, c); err != nil {
		t.Fatal(err)
	}
	go w.read()
	t.Cleanup(func() {
		w.s.Close()
		w.dev.Close()
		w.start()
		synctest.Wait()
		checkLeaks(t)
	})
	return w
}

// read stores arriving frames until the device is closed.
func (w *peer) read() {
	var fs [link.BatchSize]*link.Frame
	for {
		w.mu.Lock()
		stopped := w.stopped
		w.mu.Unlock()
		if stopped != nil {
			<-stopped
			continue
		}
		n, err := w.queue.Recv(fs[:])
		w.mu.Lock()
		for _, f := range fs[:n] {
			w.frames = append(w.frames, append([]byte(nil), f.Bytes()...))
			f.Free()
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// hasNew reports whether there is a frame that the test has not examined.
func (w *peer) hasNew() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames) > 0
}

// stop makes the peer stop reading after the next frame, so that the stack's device fills
// up. start resumes reading.
func (w *peer) stop() {
	w.mu.Lock()
	w.stopped = make(chan struct{})
	w.mu.Unlock()
	w.advance(0)
}

func (w *peer) start() {
	w.mu.Lock()
	if w.stopped != nil {
		close(w.stopped)
		w.stopped = nil
	}
	w.mu.Unlock()
	w.advance(0)
}

// advance lets the time d pass and waits until all goroutines are idle. Timers due by
// then have fired; the stack's clocks round up to ticks of 65 µs.
func (w *peer) advance(d time.Duration) {
	time.Sleep(d + 2*timer.Tick)
	synctest.Wait()
}

// forget drops the frames that the test has not examined.
func (w *peer) forget() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames = nil
}

// next returns the next frame visible to the test, or nil if there is none now.
func (w *peer) next() *seen {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.frames) > 0 {
		f := look(w.t, w.frames[0])
		w.frames = w.frames[1:]
		if (f.arp == nil || w.arps) && (f.group == nil || w.groups) {
			return f
		}
	}
	return nil
}

// want checks that the next frame from the stack is available now and reads text.
func (w *peer) want(sentence, text string) *seen {
	w.t.Helper()
	f := w.next()
	if f == nil {
		w.t.Fatalf("%s: there is nothing on the wire, want %s", sentence, text)
	}
	if f.String() != text {
		w.t.Fatalf("%s:\n got %s\nwant %s", sentence, f, text)
	}
	return f
}

// wantNone checks that the stack has sent nothing more.
func (w *peer) wantNone(sentence string) {
	w.t.Helper()
	if f := w.next(); f != nil {
		w.t.Fatalf("%s: there is %s on the wire", sentence, f)
	}
}

// wantCount checks the value of a counter of the stack.
func (w *peer) wantCount(sentence string, which stack.Counter, n uint64) {
	w.t.Helper()
	synctest.Wait()
	c := w.s.Counters()
	if got := c.Get(which); got != n {
		w.t.Errorf("%s: %v is %d, want %d", sentence, which, got, n)
	}
}

// heldFrames returns the number of allocated frames once all goroutines are idle.
func (w *peer) heldFrames() int {
	synctest.Wait()
	return link.Outstanding()
}

// send puts a frame on the wire.
func (w *peer) send(b []byte) {
	w.t.Helper()
	f := link.NewFrame(len(b))
	copy(f.Bytes(), b)
	w.out = append(w.out, f)
	if !w.holding {
		w.release()
	}
}

// hold keeps frames back until release, so that they reach the stack together.
func (w *peer) hold() { w.holding = true }

func (w *peer) release() {
	w.t.Helper()
	if n, err := w.queue.Send(w.out); n != len(w.out) || err != nil {
		w.t.Fatalf("the pipe took %d of %d frames, %v", n, len(w.out), err)
	}
	w.out, w.holding = nil, false
	synctest.Wait()
}

// ethernet returns a frame from the peer to the stack.
func ethernet(dst wire.MAC, kind wire.EtherType, payload []byte) []byte {
	h := wire.Ethernet{Dst: dst, Src: macB, Type: kind}
	b := make([]byte, h.Len(), h.Len()+len(payload))
	h.Put(b)
	return append(b, payload...)
}

// sendARP sends an ARP packet; zero fields take the values of the peer.
func (w *peer) sendARP(a wire.ARP) {
	w.t.Helper()
	if a.SenderMAC.IsZero() {
		a.SenderMAC = macB
	}
	if !a.SenderIP.IsValid() {
		a.SenderIP = addrB
	}
	dst := a.TargetMAC
	if dst.IsZero() {
		dst = wire.Broadcast
	}
	b := make([]byte, wire.ARPLen)
	a.Put(b)
	w.send(ethernet(dst, wire.TypeARP, b))
}

// packet returns an IP packet. Addresses that h leaves zero are set to the peer's and the
// stack.
func packet(h wire.IPv4, payload []byte) []byte {
	if !h.Src.IsValid() {
		h.Src = addrB
	}
	if !h.Dst.IsValid() {
		h.Dst = addrA
	}
	if h.TTL == 0 {
		h.TTL = 64
	}
	h.PayloadLen = len(payload)
	b := make([]byte, h.Len(), h.Len()+len(payload))
	h.Put(b)
	return append(b, payload...)
}

// sendIP sends an IP packet: see packet.
func (w *peer) sendIP(h wire.IPv4, payload []byte) {
	w.t.Helper()
	w.send(ethernet(macA, wire.TypeIPv4, packet(h, payload)))
}

// datagram returns a UDP datagram with its checksum.
func datagram(src, dst netip.AddrPort, data string) []byte {
	h := wire.UDP{SrcPort: src.Port(), DstPort: dst.Port(), PayloadLen: len(data)}
	b := make([]byte, wire.UDPLen, wire.UDPLen+len(data))
	h.Put(b)
	b = append(b, data...)
	wire.PutUDPChecksum(b, src.Addr(), dst.Addr())
	return b
}

// sendUDP sends a datagram from a port of the peer to a port of the stack.
func (w *peer) sendUDP(from, to uint16, data string) {
	w.t.Helper()
	src, dst := netip.AddrPortFrom(addrB, from), netip.AddrPortFrom(addrA, to)
	w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP}, datagram(src, dst, data))
}

// message returns an ICMP message with its checksum.
func message(h wire.ICMPv4, data []byte) []byte {
	b := make([]byte, wire.ICMPv4Len, wire.ICMPv4Len+len(data))
	h.Put(b)
	b = append(b, data...)
	wire.PutICMPv4Checksum(b)
	return b
}

// sendICMP sends a message to the stack.
func (w *peer) sendICMP(h wire.ICMPv4, data []byte) {
	w.t.Helper()
	w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP}, message(h, data))
}

// seen is a parsed frame from the stack.
type seen struct {
	eth  wire.Ethernet
	arp  *wire.ARP
	ip   wire.IPv4
	raw  []byte // the IP packet
	tcp  *wire.TCP
	udp  *wire.UDP
	icmp *wire.ICMPv4
	six  *six   // the IPv6 fields; nil: the packet is IPv4. ip also has the fields that both versions have
	data []byte // payload of the innermost header

	group *wire.GroupMessage
}

// look parses a frame and checks its lengths and checksums.
func look(t testing.TB, b []byte) *seen {
	t.Helper()
	f := &seen{}
	var err error
	if f.eth, f.data, err = wire.ParseEthernet(b); err != nil {
		t.Fatalf("the stack sent %x: %v", b, err)
	}
	if f.eth.Type == wire.TypeARP {
		a, err := wire.ParseARP(f.data)
		if err != nil {
			t.Fatalf("the stack sent ARP %x: %v", b, err)
		}
		f.arp = &a
		return f
	}
	f.raw = f.data
	if f.eth.Type == wire.TypeIPv6 {
		f.look6(t)
		return f
	}
	if f.ip, f.data, err = wire.ParseIPv4(f.raw); err != nil || !wire.IPv4ChecksumOK(f.raw) {
		t.Fatalf("the stack sent IP %x: %v", b, err)
	}
	if !f.ip.IsFragment() {
		f.lookInside(t)
	}
	return f
}

func (f *seen) lookInside(t testing.TB) {
	t.Helper()
	segment, good, err := f.data, true, error(nil)
	switch f.ip.Protocol {
	case wire.ProtoTCP:
		f.tcp = new(wire.TCP)
		*f.tcp, f.data, err = wire.ParseTCP(segment)
		good = wire.TCPChecksumOK(segment, f.ip.Src, f.ip.Dst)
	case wire.ProtoUDP:
		f.udp = new(wire.UDP)
		*f.udp, f.data, err = wire.ParseUDP(segment)
		good = !f.udp.NoChecksum && wire.UDPChecksumOK(segment, f.ip.Src, f.ip.Dst)
	case wire.ProtoIGMP:
		good = wire.IGMPChecksumOK(segment)
		f.lookGroup(t, wire.IGMP)
	case wire.ProtoICMP:
		f.icmp = new(wire.ICMPv4)
		*f.icmp, f.data, err = wire.ParseICMPv4(segment)
		good = wire.ICMPv4ChecksumOK(segment)
	}
	if err != nil || !good {
		t.Fatalf("the stack sent protocol %d %x: %v, checksum good: %v", f.ip.Protocol, segment, err, good)
	}
}

// String returns the content of the frame as one line of text.
func (f *seen) String() string {
	switch {
	case f.arp != nil && f.arp.Op == wire.ARPRequest:
		return fmt.Sprintf("arp who-has %v tell %v", f.arp.TargetIP, f.arp.SenderIP)
	case f.arp != nil:
		return fmt.Sprintf("arp %v is-at %v", f.arp.SenderIP, f.arp.SenderMAC)
	case f.tcp != nil:
		text := fmt.Sprintf("tcp %v:%d > %v:%d %v", f.ip.Src, f.tcp.SrcPort, f.ip.Dst, f.tcp.DstPort, f.tcp.Flags)
		switch {
		case len(f.data) > 100:
			text += fmt.Sprintf(" %d bytes", len(f.data))
		case len(f.data) > 0:
			text += fmt.Sprintf(" %q", f.data)
		}
		return text
	case f.udp != nil:
		return fmt.Sprintf("udp %v:%d > %v:%d %q", f.ip.Src, f.udp.SrcPort, f.ip.Dst, f.udp.DstPort, f.data)
	case f.icmp != nil:
		return fmt.Sprintf("icmp %v > %v type %d code %d", f.ip.Src, f.ip.Dst, f.icmp.Type, f.icmp.Code)
	case f.group != nil:
		return f.stringGroup()
	case f.six != nil:
		return f.string6()
	}
	return fmt.Sprintf("ip %v > %v protocol %d offset %d length %d", f.ip.Src, f.ip.Dst, f.ip.Protocol, f.ip.FragOffset, len(f.data))
}

var unspecified netip.AddrPort

func mustAddrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
