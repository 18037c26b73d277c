package e1000e_test

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"loam/driver/pci"
	virtio "loam/driver/virtio/model"
	"loam/internal/race"
	"loam/link"
	"loam/link/e1000e"
	"loam/link/e1000e/model"
	"loam/link/linktest"
	"loam/wire"
)

// Kinds of cards, by their interrupts.
var (
	newer = model.Kind{ID: 0x10d3, Vectors: 5}
	kinds = map[string]model.Kind{
		"82574L":                    newer,
		"82574L with MSI":           {ID: 0x10d3, MSI: true},
		"82574L with a line":        {ID: 0x10d3},
		"82540EM":                   {ID: 0x100e},
		"82545EM with MSI":          {ID: 0x100f, MSI: true},
		"82574LA with many vectors": {ID: 0x10f6, Vectors: 8},
	}
)

// end is an open card of the model.
type end struct {
	*e1000e.Device
	card    *model.Card
	machine *virtio.Machine
}

// tryOpen opens one card in a machine of its own.
func tryOpen(c *model.Card, k model.Kind, config e1000e.Config) (end, error) {
	e := end{card: c, machine: virtio.New()}
	c.Add(e.machine, k)
	bus, err := pci.Scan(e.machine, nil)
	if err != nil {
		return e, err
	}
	e.Device, err = e1000e.Open(e.machine, bus.Functions()[0], config)
	return e, err
}

// newCards returns two connected cards.
func newCards() (a, b *model.Card) {
	a, b = &model.Card{MAC: [6]byte{2, 0, 0, 0, 0, 1}}, &model.Card{MAC: [6]byte{2, 0, 0, 0, 0, 2}}
	model.Connect(a, b)
	return a, b
}

// openEnd opens a card. When the test ends, it is closed, and no memory may be left allocated.
func openEnd(t testing.TB, c *model.Card, k model.Kind, config e1000e.Config) end {
	t.Helper()
	e, err := tryOpen(c, k, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := e.machine.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
	})
	return e
}

// open opens two connected cards.
func open(t testing.TB, k model.Kind, config e1000e.Config) (a, b end) {
	t.Helper()
	x, y := newCards()
	return openEnd(t, x, k, config), openEnd(t, y, k, config)
}

// raced lists the kinds of cards that are tested with the race detector. All cards would take a minute with it.
var raced = []string{"82574L", "82574L with a line"}

func TestDevice(t *testing.T) {
	configs := map[string]e1000e.Config{
		"": {Segment: true}, ", jumbo frames": {MTU: 9000, Segment: true}, ", short rings": {Depth: 64}, ", no offloads": {NoOffloads: true},
	}
	for name, k := range kinds {
		for option, config := range configs {
			if option != "" && k != newer || race.Enabled && (option != "" || !slices.Contains(raced, name)) {
				continue
			}
			t.Run(name+option, func(t *testing.T) {
				linktest.Run(t, func(t testing.TB) (link.Device, link.Device) {
					a, b := open(t, k, config)
					return a.Device, b.Device
				}, linktest.PeerUnseen, linktest.Cable)
			})
		}
	}
}

// BenchmarkDevice measures the driver together with the simulated card, which takes most of the time.
func BenchmarkDevice(b *testing.B) {
	linktest.Bench(b, func(t testing.TB) (link.Device, link.Device) {
		x, y := open(t, newer, e1000e.Config{Segment: true})
		return x.Device, y.Device
	}, linktest.PeerUnseen, linktest.Cable)
}

// The device has the address of the card. If the card has none, the device has the configured address, or a random one.
func TestMAC(t *testing.T) {
	configured := wire.MAC{2, 9, 9, 9, 9, 9}
	for name, test := range map[string]struct{ card, config, want wire.MAC }{
		"card":       {wire.MAC{2, 1, 2, 3, 4, 5}, configured, wire.MAC{2, 1, 2, 3, 4, 5}},
		"configured": {wire.MAC{}, configured, configured},
		"multicast":  {wire.MAC{1, 1, 2, 3, 4, 5}, configured, configured},
		"random":     {wire.MAC{}, wire.MAC{}, wire.MAC{}},
	} {
		a, b := newCards()
		a.MAC = test.card
		e := openEnd(t, a, newer, e1000e.Config{MAC: test.config})
		if got := e.Info().MAC; got != test.want && test.want != (wire.MAC{}) || got.IsZero() || got[0]&1 != 0 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		// The card receives frames for this address.
		from := openEnd(t, b, newer, e1000e.Config{})
		f := linktest.Plain(link.Ethernet, 100, 7)
		to := e.Info().MAC
		copy(f.Bytes(), to[:])
		exchange(t, from, e, f, 1)
	}
}

// Frames for other addresses are received only by a promiscuous card. Multicast frames are always received.
func TestFilter(t *testing.T) {
	for _, promiscuous := range []bool{false, true} {
		a, b := open(t, newer, e1000e.Config{Promiscuous: promiscuous})
		var batch []*link.Frame
		for i, to := range []wire.MAC{{2, 8, 8, 8, 8, 8}, {0x33, 0x33, 0, 0, 0, 1}, b.Info().MAC} {
			f := linktest.Plain(link.Ethernet, 100, uint32(i))
			copy(f.Bytes(), to[:])
			batch = append(batch, f)
		}
		if n, err := a.Queues()[0].Send(batch); n != len(batch) || err != nil {
			t.Fatalf("Send: %d, %v", n, err)
		}
		want := 2
		if promiscuous {
			want = 3
		}
		got := 0
		for in := make([]*link.Frame, 4); got < want; {
			n, err := b.Queues()[0].Recv(in)
			if err != nil {
				t.Fatal(err)
			}
			link.FreeAll(in[:n])
			got += n
		}
		if got != want {
			t.Errorf("promiscuous %v: %d frames, want %d", promiscuous, got, want)
		}
	}
}

// exchange sends one frame, and returns the frames that arrive.
func exchange(t *testing.T, from, to end, f *link.Frame, want int) (got []*link.Frame) {
	t.Helper()
	if n, err := from.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
		t.Fatalf("Send: %d, %v", n, err)
	}
	in := make([]*link.Frame, want)
	for len(got) < want {
		n, err := to.Queues()[0].Recv(in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in[:n]...)
	}
	t.Cleanup(func() { link.FreeAll(got) })
	return got
}

// Frames whose checksum is left to the card arrive with it. Frames to be cut arrive as the segments that link.Segment
// makes.
func TestOffloads(t *testing.T) {
	for name, c := range map[string]linktest.Transport{
		"TCP4":        {Protocol: wire.ProtoTCP, Payload: 1000},
		"TCP6":        {Protocol: wire.ProtoTCP, IPv6: true, Payload: 999},
		"UDP4":        {Protocol: wire.ProtoUDP, Payload: 1},
		"UDP6":        {Protocol: wire.ProtoUDP, IPv6: true, Payload: 17},
		"TSO4":        {Protocol: wire.ProtoTCP, Payload: 20_000, GSOSize: 1000},
		"TSO4, large": {Protocol: wire.ProtoTCP, Payload: 65_000, GSOSize: 1448},
		"TSO4, small": {Protocol: wire.ProtoTCP, Payload: 3001, GSOSize: 100},
		"TSO4, one":   {Protocol: wire.ProtoTCP, Payload: 1000, GSOSize: 1000},
		"TSO6":        {Protocol: wire.ProtoTCP, IPv6: true, Payload: 60_000, GSOSize: 1428},
	} {
		for _, k := range []model.Kind{newer, kinds["82540EM"]} {
			a, b := open(t, k, e1000e.Config{Segment: true})
			if c.GSOSize > 0 && c.IPv6 && !a.Info().Offloads.Has(link.OffloadTSO6) {
				continue // the stack cuts the frame
			}
			oracle := linktest.Unfinished(link.Ethernet, c)
			want := segments(t, oracle)
			got := exchange(t, a, b, linktest.Unfinished(link.Ethernet, c), len(want))
			for i, f := range got {
				padded := append(slices.Clone(want[i]), make([]byte, max(0, linktest.MinPadded-len(want[i])))...)
				if !bytes.Equal(f.Bytes(), padded) {
					t.Errorf("%s: segment %d of %d is\n% x\nwant\n% x", name, i, len(want), f.Bytes()[:60], padded[:60])
					break
				}
				if f.Offload != (link.Offload{ChecksumValid: true}) {
					t.Errorf("%s: segment %d has %+v", name, i, f.Offload)
				}
			}
			if cut := a.card.Cut; (cut == 1) != (len(want) > 1) {
				t.Errorf("%s: the card has cut %d frames, want the card to cut it: %v", name, cut, len(want) > 1)
			}
		}
	}
}

// segments returns the finished frames that f is sent as.
func segments(t *testing.T, f *link.Frame) (all [][]byte) {
	t.Helper()
	defer f.Free()
	if f.GSO == link.GSONone {
		if !f.FinishChecksum() {
			t.Fatal("the checksum cannot be finished")
		}
		return [][]byte{slices.Clone(f.Bytes())}
	}
	for f.GSO != link.GSONone {
		var dst [64]*link.Frame
		n, ok := link.Segment(link.Ethernet, f, dst[:])
		if !ok {
			t.Fatal("the frame cannot be cut")
		}
		for _, s := range dst[:n] {
			all = append(all, slices.Clone(s.Bytes()))
			s.Free()
		}
	}
	return append(all, slices.Clone(f.Bytes()))
}

// The context of a checksum is written only if it changes. A checksum that the
// card cannot compute is computed by the driver, and a short frame is padded with zeros.
func TestSoftware(t *testing.T) {
	a, b := open(t, newer, e1000e.Config{Segment: true})
	plain := linktest.Transport{Protocol: wire.ProtoUDP, Payload: 30}
	for i := range 3 {
		want := segments(t, linktest.Unfinished(link.Ethernet, plain))
		got := exchange(t, a, b, linktest.Unfinished(link.Ethernet, plain), 1)
		if !bytes.Equal(got[0].Bytes(), want[0]) || a.card.Sums != i+1 {
			t.Errorf("frame %d: % x, want % x; %d checksums by the card", i, got[0].Bytes(), want[0], a.card.Sums)
		}
	}
	// ICMPv6 has its checksum at offset 2.
	f := linktest.Unfinished(link.Ethernet, plain)
	f.CsumOffset = 2
	oracle := link.FrameOf(f.Bytes())
	oracle.Offload = f.Offload
	want := segments(t, oracle)
	got := exchange(t, a, b, f, 1)
	if !bytes.Equal(got[0].Bytes(), want[0]) || a.card.Sums != 3 {
		t.Errorf("checksum at offset 2: % x, want % x; %d checksums by the card", got[0].Bytes(), want[0], a.card.Sums)
	}
	short := linktest.Plain(link.Ethernet, 20, 1)
	padded := append(slices.Clone(short.Bytes()), make([]byte, 40)...)
	if got := exchange(t, a, b, short, 1); !bytes.Equal(got[0].Bytes(), padded) {
		t.Errorf("a short frame arrives as % x, want % x", got[0].Bytes(), padded)
	}
}

// A wrong checksum is not valid: the stack checks it again, and counts it.
func TestBadChecksum(t *testing.T) {
	a, b := open(t, newer, e1000e.Config{})
	f := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 100})
	f.FinishChecksum()
	f.Bytes()[60] ^= 1
	if got := exchange(t, a, b, f, 1); got[0].ChecksumValid {
		t.Error("the checksum counts as valid")
	}
}

// The device learns that the cable is disconnected and connected.
func TestLinkUp(t *testing.T) {
	for name, k := range kinds {
		a, _ := open(t, k, e1000e.Config{})
		for i, up := range []bool{false, true} {
			a.card.SetLink(up)
			for a.Counters().Changes <= uint64(i) {
				runtime.Gosched() // another goroutine handles the interrupt
			}
			if a.LinkUp() != up {
				t.Errorf("%s: LinkUp = %v, want %v", name, a.LinkUp(), up)
			}
		}
	}
}
