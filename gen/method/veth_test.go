//go:build linux

package method

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/internal/race"
	"loam/link/match"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// lab is a veth pair to another namespace and the configuration for opening methods on it.
type lab struct {
	*netns.Far
	near, far string
	config    Config
}

func newLab(t testing.TB) *lab {
	far := netns.NewFar(t)
	l := &lab{Far: far}
	var n int
	l.near, l.far, n = far.Wire(t)
	l.config = Config{
		Interface:   l.near,
		Source:      netip.MustParseAddrPort(fmt.Sprintf("10.%d.0.1:1024", n)),
		Destination: netip.MustParseAddrPort(fmt.Sprintf("10.%d.0.2:9", n)),
		Size:        1400,
	}
	i, err := net.InterfaceByName(l.near)
	if err != nil {
		t.Fatal(err)
	}
	copy(l.config.SourceMAC[:], i.HardwareAddr)
	// A permanent neighbour entry: the address does not answer, since the far host does not use it.
	netns.IP(t, "neigh", "replace", l.config.Destination.Addr().String(), "lladdr", l.mac().String(), "dev", l.near, "nud", "permanent")
	l.config.NextHop = l.mac()
	return l
}

func (l *lab) mac() wire.MAC { return wire.MAC{2, 0, 0, 0, 0, 0x99} }

// listen opens a receiver at the far end for datagrams to port 9.
func (l *lab) listen(t testing.TB, name string) Receiver {
	t.Helper()
	return l.listenFor(t, name, match.Rule{Protocol: wire.ProtoUDP, Ports: match.Port(9)})
}

// listenFor opens a receiver at the far end.
func (l *lab) listenFor(t testing.TB, name string, rules ...match.Rule) Receiver {
	t.Helper()
	m, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	c := l.config
	c.Interface, c.Promiscuous = l.far, true
	c.Match = rules
	queues := 1
	if name == "xdp" {
		queues = 2 // the kernel sends on both queues, and an XDP socket receives from one queue only
	}
	var all receivers
	for c.Queue = range queues {
		var r Receiver
		l.Do(t, func() { r, err = m.Listen(c) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		all = append(all, r)
	}
	if queues == 1 {
		return all[0]
	}
	return all
}

// receivers combines the receivers of all queues.
type receivers []Receiver

func (rs receivers) Receive(timeout time.Duration, got func([]byte, int64)) (count int, err error) {
	for end := time.Now().Add(timeout); count == 0 && err == nil; {
		for _, r := range rs {
			n, failed := r.Receive(timeout/100, got)
			if count += n; failed != nil {
				err = failed
			}
		}
		if time.Now().After(end) {
			break
		}
	}
	return count, err
}

func (rs receivers) Drops() (n uint64) {
	for _, r := range rs {
		n += r.Drops()
	}
	return n
}

func (rs receivers) Close() (err error) {
	for _, r := range rs {
		err = errors.Join(err, r.Close())
	}
	return err
}

// put writes a UDP datagram with a payload, starting at layer l, and returns its length.
func (l *lab) put(slot []byte, layer Layer, payload []byte) int {
	frame := make([]byte, 42+len(payload))
	eth := wire.Ethernet{Dst: l.mac(), Src: l.config.SourceMAC, Type: wire.TypeIPv4}
	eth.Put(frame)
	ip := wire.IPv4{TTL: 64, Protocol: wire.ProtoUDP, Src: l.config.Source.Addr(), Dst: l.config.Destination.Addr(), PayloadLen: 8 + len(payload)}
	ip.Put(frame[14:])
	udp := wire.UDP{SrcPort: 1024, DstPort: 9, PayloadLen: len(payload)}
	udp.Put(frame[34:])
	copy(frame[42:], payload)
	return copy(slot, frame[layer.HeaderLen(false):])
}

// body returns a payload that differs from frame to frame.
func body(i int) []byte {
	return []byte(fmt.Sprintf("frame %d %s", i, strings.Repeat("x", i*7%1300)))
}

// number returns the frame number in a payload that the function body made.
func number(payload string) (i int) {
	fmt.Sscanf(payload, "frame %d", &i)
	return i
}

// collect receives until want frames have arrived, or none has arrived for a second.
func collect(t testing.TB, r Receiver, want int) (payloads []string) {
	t.Helper()
	for len(payloads) < want {
		n, err := r.Receive(time.Second, func(b []byte, at int64) {
			switch r.(type) {
			case *packetReceiver, *ringReceiver, *tcReceiver: // xdp reports no times
				if since := time.Since(time.Unix(0, at)); since < 0 || since > time.Minute {
					t.Errorf("a frame is %v old", since)
				}
			}
			payloads = append(payloads, string(b[42:]))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	return payloads
}

// Every method delivers all frames in order to every kind of receiver, and its counters are correct.
func TestMethodsDeliver(t *testing.T) {
	const count = 500
	for _, rx := range []string{"packet", "ring", "xdp", "tc"} {
		for _, m := range All() {
			if m.Name == "tap" || rx == "tc" && (m.Name == "mmsg" || m.Name == "udpgso") {
				continue // the receiver tc ignores messages of several datagrams, which are not segmented on a veth
			}
			t.Run(m.Name+" to "+rx, func(t *testing.T) {
				l := newLab(t)
				r := l.listen(t, rx)
				s, err := m.Open(l.config)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if s.Layer() != m.Layer {
					t.Errorf("a sender of layer %v, the table says %v", s.Layer(), m.Layer)
				}
				next, bytes := 0, 0
				for next < count {
					before := next
					n, err := s.Send(50, func(slot []byte) int {
						if next == count {
							return 0
						}
						length := l.put(slot, m.Layer, body(next))
						next++
						bytes += length
						return length
					})
					if err != nil || n != next-before {
						t.Fatalf("%d of %d handed over, %v", n, next-before, err)
					}
				}
				if err := s.Flush(5 * time.Second); err != nil {
					t.Fatal(err)
				}
				c := s.Counters()
				if c.Handed != count || c.Left != count || c.Bytes != uint64(bytes) || c.Refused != 0 {
					t.Errorf("%+v, want %d frames of %d bytes", c, count, bytes)
				}
				got := collect(t, r, count)
				if rx == "xdp" { // the frames of one queue have an order, the frames of two queues have none
					slices.SortFunc(got, func(a, b string) int { return number(a) - number(b) })
				}
				if len(got) != count || r.Drops() != 0 {
					t.Fatalf("%d frames arrived, %d dropped", len(got), r.Drops())
				}
				for i, p := range got {
					if want := string(body(i)); p != want && !(len(p) > len(want) && strings.HasPrefix(p, want)) {
						t.Fatalf("frame %d is %.20q, want %.20q", i, p, want)
					}
				}
			})
		}
	}
}

// The kernel receives the frames that tap sends. The TAP interface is removed afterwards.
func TestTapSends(t *testing.T) {
	l := newLab(t)
	c := l.config
	c.Interface = "gentap"
	s, err := openTap(c)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Send(100, func(slot []byte) int { return l.put(slot, Frame, body(1)) })
	if err != nil || n != 100 || s.Counters().Left != 100 {
		t.Errorf("%d, %v, %+v", n, err, s.Counters())
	}
	if text := netns.IP(t, "-s", "link", "show", "gentap"); !strings.Contains(text, " 100 ") {
		t.Errorf("the kernel has not received 100 frames:\n%s", text)
	}
	s.Close()
	if _, err := net.InterfaceByName("gentap"); err == nil {
		t.Error("the interface is still there")
	}
}

// A frame that is too long is refused and counted, and the others are sent.
func TestTooLongIsRefused(t *testing.T) {
	for _, m := range All() {
		if m.Name == "tap" || m.Name == "loam" || m.Name == "ring" {
			continue // these methods check the length of a frame themselves
		}
		t.Run(m.Name, func(t *testing.T) {
			l := newLab(t)
			netns.IP(t, "link", "set", l.near, "mtu", "1000")
			l.config.Size = 3000
			before := l.Received(t, l.far)
			s, err := m.Open(l.config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			i := 0
			n, err := s.Send(3, func(slot []byte) int {
				i++
				size := 100
				if i == 2 {
					size = 2900
				}
				return l.put(slot, m.Layer, make([]byte, size))
			})
			fragments := uint64(0)
			if m.Layer == Payload && m.Name != "udpgso" {
				fragments = 3 // the kernel fragments the datagram, since it is longer than the MTU
			}
			c := s.Counters()
			arrived := l.Received(t, l.far) - before
			if fragments > 0 {
				if err != nil || n != 3 || arrived != 2+fragments {
					t.Errorf("%d handed over, %d arrived, %v, %+v", n, arrived, err, c)
				}
				return
			}
			want := uint64(2)
			if m.Name == "udpgso" {
				want = 1 // the kernel refuses a train of datagrams as a whole
			}
			if err != nil || n != int(want) || c.Refused != 3-want || c.Handed != want || arrived != want {
				t.Errorf("%d handed over, %d arrived, %v, %+v", n, arrived, err, c)
			}
		})
	}
}

// All receivers put back a VLAN tag that the kernel has removed from a frame.
func TestReceiversKeepTags(t *testing.T) {
	for _, name := range []string{"packet", "ring", "xdp"} {
		l := newLab(t)
		r := l.listenFor(t, name)
		s, err := openPacket(l.config)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x81, 0, 0x60, 7, 0x88, 0xb5}, make([]byte, 60)...)
		s.Send(1, func(slot []byte) int { return copy(slot, want) })
		found := false
		for range 10 {
			r.Receive(100*time.Millisecond, func(b []byte, _ int64) { found = found || string(b) == string(want) })
			if found {
				break
			}
		}
		if !found {
			t.Errorf("%s: the frame has not come with its tag", name)
		}
		s.Close()
	}
}

// Sending a frame allocates no memory.
func TestSendAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool loses entries on purpose there")
	}
	for _, m := range All() {
		if m.Name == "loam" {
			continue // the stack's shard allocates on its own goroutine; the stack's own tests check that
		}
		t.Run(m.Name, func(t *testing.T) {
			l := newLab(t)
			c := l.config
			if m.Name == "tap" {
				c.Interface = "gentap"
			}
			s, err := m.Open(c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			frame := make([]byte, 200)
			n := l.put(frame, m.Layer, make([]byte, 100))
			fill := func(slot []byte) int { return copy(slot, frame[:n]) }
			if allocs := testing.AllocsPerRun(50, func() { s.Send(64, fill) }); allocs > 0 {
				t.Errorf("%v allocations for 64 frames", allocs)
			}
		})
	}
}

// Errors of opening fit on one line and say what to do.
func TestOpenErrors(t *testing.T) {
	netns.Need(t)
	for _, m := range All() {
		if m.Name == "tap" {
			continue
		}
		c := Config{Interface: "nosuch0", Source: netip.MustParseAddrPort("10.0.0.1:1"), Destination: netip.MustParseAddrPort("10.0.0.2:9")}
		s, err := m.Open(c)
		if err == nil {
			s.Close()
			t.Fatalf("%s opened an interface that is not there", m.Name)
		}
		if text := err.Error(); !strings.Contains(text, "nosuch0") || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", m.Name, text)
		}
	}
	if _, err := ByName("smoke"); err == nil || !strings.Contains(err.Error(), "allowed: net, udp, mmsg") {
		t.Errorf("ByName: %v", err)
	}
}
