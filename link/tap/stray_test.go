//go:build linux

package tap_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/linktest"
	"loam/link/tap"
	"loam/wire"
)

// newStraySieve skips a test if programs cannot be loaded.
func newStraySieve(t *testing.T) tap.StraySieve {
	t.Helper()
	s, err := tap.NewStraySieve()
	if err != nil && tap.CannotLoad(err) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// randomSegment returns a frame that is often a TCP segment over IPv4, with few different flows.
func randomSegment(rng *rand.Rand) []byte {
	b := make([]byte, 120)
	kind := wire.TypeIPv4
	if rng.IntN(10) == 0 {
		kind = wire.TypeIPv6
	}
	binary.BigEndian.PutUint16(b[12:], uint16(kind))
	p := b[wire.EthernetLen:]
	words := 5
	if rng.IntN(3) == 0 {
		words = rng.IntN(16)
	}
	p[0], p[9] = byte(0x40|words), byte(wire.ProtoTCP)
	if rng.IntN(10) == 0 {
		p[9] = byte(wire.ProtoUDP)
	}
	if rng.IntN(4) == 0 {
		binary.BigEndian.PutUint16(p[6:], []uint16{0x4000, 0x2000, 7, 0x8000}[rng.IntN(4)])
	}
	copy(p[12:], []byte{192, 0, 2, byte(rng.IntN(4)), 198, 51, 100, byte(rng.IntN(2))})
	transport := p[4*words:]
	binary.BigEndian.PutUint16(transport, uint16(rng.IntN(3)<<8))
	binary.BigEndian.PutUint16(transport[2:], uint16(rng.IntN(3)))
	transport[13] = byte(rng.IntN(256))
	return b[:len(b)-rng.IntN(3)*rng.IntN(33)]
}

// isStray reports whether the program must regard a frame as a stray TCP segment, which is one whose flow is not
// in the set of connections.
func isStray(b []byte, flows *link.Flows) bool {
	p := b[wire.EthernetLen:]
	words := int(p[0] & 15)
	switch {
	case binary.BigEndian.Uint16(b[12:]) != uint16(wire.TypeIPv4), binary.BigEndian.Uint16(p[6:])&0x3fff != 0:
		return false
	case wire.Protocol(p[9]) != wire.ProtoTCP, words < 5, len(p) < 4*words+14:
		return false
	}
	transport := p[4*words:]
	if wire.TCPFlags(transport[13])&(wire.SYN|wire.ACK) == wire.SYN {
		return false
	}
	return !flows.Has(link.Flow{
		Src: binary.BigEndian.Uint32(p[12:]), Dst: binary.BigEndian.Uint32(p[16:]),
		SrcPort: binary.BigEndian.Uint16(transport), DstPort: binary.BigEndian.Uint16(transport[2:]),
	})
}

// The program drops the segments of all flows that are not in the set.
func TestStrayProgram(t *testing.T) {
	s := newStraySieve(t)
	s.Set(31, true)
	rng := rand.New(rand.NewPCG(5, 18))
	var added []link.Flow
	dropped, passed := 0, 0
	for range 20_000 {
		switch f := (link.Flow{
			Src: 0xc0000200 + uint32(rng.IntN(4)), Dst: 0xc6336400 + uint32(rng.IntN(2)),
			SrcPort: uint16(rng.IntN(3) << 8), DstPort: uint16(rng.IntN(3)),
		}); {
		case rng.IntN(100) != 0:
		case len(added) > 20:
			s.Flows().Remove(added[0])
			added = added[1:]
		default:
			s.Flows().Add(f)
			added = append(added, f)
		}
		b := randomSegment(rng)
		pass, err := s.Passes(b)
		must(t, err)
		if pass == isStray(b, s.Flows()) {
			t.Fatalf("% x:\npassed: %v, flows: %v", b, pass, added)
		}
		if pass {
			passed++
		} else {
			dropped++
		}
	}
	if dropped < 2000 || passed < 2000 {
		t.Errorf("%d frames were dropped, %d passed: the test shows little", dropped, passed)
	}
}

// One in 16 stray segments (TCP segments without a connection) passes. When the time of the request is over, all of them pass.
func TestStrayProgramShare(t *testing.T) {
	s := newStraySieve(t)
	b := randomSegment(rand.New(rand.NewPCG(1, 1)))
	for seed := uint64(2); !isStray(b, s.Flows()); seed++ {
		b = randomSegment(rand.New(rand.NewPCG(seed, 1)))
	}
	const n = 4096
	passed := func() (count int) {
		for range n {
			pass, err := s.Passes(b)
			must(t, err)
			if pass {
				count++
			}
		}
		return count
	}
	s.Set(4, true)
	if got := passed(); got < n/16-100 || got > n/16+100 { // the standard deviation is 16
		t.Errorf("%d of %d frames passed, want one in 16", got, n)
	}
	if s.Set(4, false); passed() != n {
		t.Error("frames are dropped after the time is over")
	}
}

// strayDevice returns a TAP device that can drop stray segments (TCP segments without a connection), and a
// packet socket on the kernel's side of its interface. It skips the test if this machine cannot drop them.
func strayDevice(t *testing.T, c tap.Config) (d *tap.Device, kernel link.Device) {
	t.Helper()
	needTun(t)
	d = openTap(t, c, "")
	if _, err := d.Flows(); err != nil && tap.CannotLoad(err) {
		t.Skip(err)
	}
	kernel = packetSocket(t, d.Info())
	t.Cleanup(func() { kernel.Close() })
	return d, kernel
}

// wantKinds sends all frames of linktest.Kinds and checks that those with these names arrive, in order.
func wantKinds(t *testing.T, sentence string, d, kernel link.Device, want []string) {
	t.Helper()
	names := map[string]string{}
	for _, c := range linktest.Kinds() {
		names[string(c.Frame)] = c.Name
		f := link.NewFrame(len(c.Frame))
		copy(f.Bytes(), c.Frame)
		if n, err := kernel.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
			t.Fatalf("%s: Send = %d, %v", sentence, n, err)
		}
	}
	var got []string
	for _, f := range recv(t, d, len(want), func(f *link.Frame) bool { return names[string(f.Bytes())] != "" }) {
		got = append(got, names[string(f.Bytes())])
		f.Free()
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q arrived, want %q", sentence, got, want)
	}
}

// except returns the names of linktest.Kinds except the given ones.
func except(without ...string) (names []string) {
	for _, c := range linktest.Kinds() {
		if !slices.Contains(without, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// The kernel drops segments of flows that are not in the set, and frames of the other requested kinds, and delivers
// all frames again afterwards.
func TestThinStrays(t *testing.T) {
	d, kernel := strayDevice(t, tap.Config{})
	flows, err := d.Flows()
	must(t, err)
	const strays = link.KindStray
	must(t, d.Thin(link.Thinning{Kinds: strays, Shift: 31}))
	wantKinds(t, "no connection", d, kernel, except("SYN and ACK", "ACK"))
	must(t, d.Thin(link.Thinning{Kinds: strays | link.KindSYN, Shift: 31}))
	wantKinds(t, "no connection, and SYNs", d, kernel, except("SYN", "SYN with ECN", "SYN and ACK", "ACK"))
	f, _ := link.FlowOf(netip.AddrPortFrom(linktest.Sender, 1), netip.MustParseAddrPort("10.9.0.2:80"))
	flows.Add(f)
	wantKinds(t, "a connection", d, kernel, except("SYN", "SYN with ECN"))
	flows.Remove(f)
	wantKinds(t, "the connection has ended", d, kernel, except("SYN", "SYN with ECN", "SYN and ACK", "ACK"))
	must(t, d.Thin(link.Thinning{Kinds: link.KindARP, Shift: 31}))
	wantKinds(t, "ARP only", d, kernel, except("ARP request"))
	must(t, d.Thin(link.Thinning{}))
	wantKinds(t, "the flood has ended", d, kernel, except())
}

// The program is removed when the device is closed, also from an interface that remains.
func TestStrayProgramEndsWithDevice(t *testing.T) {
	first, kernel := strayDevice(t, tap.Config{Persist: true})
	name := first.Info().Name
	defer netns.IP(t, "link", "delete", name)
	must(t, first.Thin(link.Thinning{Kinds: link.KindStray, Shift: 31}))
	must(t, first.Close())
	if _, err := first.Flows(); err == nil {
		t.Error("a closed device has flows")
	}
	d := openTap(t, tap.Config{Name: name}, "")
	wantKinds(t, "opened again", d, kernel, except())
}

func TestStraysOfTUN(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Medium: link.IP}, "")
	if _, err := d.Flows(); err == nil {
		t.Error("a TUN interface has flows, but no filter")
	}
}
