// Package linktest is the test suite that every device and every wrapping device passes. Read
// link/device.go first: each test here checks one of its guarantees.
//
// A device under test is given as two connected ends. A test keeps few enough frames in transit for
// any device. It ends by closing both ends; then no frame and no goroutine may be left. Tests never
// wait for a fixed time. A violated guarantee shows as a wrong value, or as a test that hangs with
// the guarantee on its stack.
package linktest

import (
	"slices"
	"testing"

	"loam/internal/leak"
	"loam/link"
)

// Make opens two connected ends: each receives what the other sends. A device that is its own peer
// is returned twice. Make may register a Cleanup. The suite closes the ends.
type Make func(t testing.TB) (a, b link.Device)

// Quirk is a guarantee that a device cannot give, for a reason outside Loam.
type Quirk int

// Guarantees that a device may lack.
const (
	// NeverShort: Send always takes all frames. Frames that are not received in time are lost, as
	// on a wire.
	NeverShort Quirk = iota + 1
	// PeerUnseen: an end does not detect that the other end was closed.
	PeerUnseen
	// OneWay: only a sends and only b receives with the device under test. The other directions
	// belong to a peer supplied by the test.
	OneWay
	// Cable: frames cross an Ethernet cable. Frames shorter than MinPadded arrive padded, and the
	// device carries out all offloads instead of delivering their metadata.
	Cable
)

// MinPadded is the least length of a frame that a device with the quirk Cable does not pad (IEEE
// 802.3, without the frame check sequence).
const MinPadded = 60

// test checks one guarantee.
type test struct {
	name string
	run  func(t *testing.T, p *pair)
	not  []Quirk // the test is skipped for devices with one of these quirks
}

var tests = []test{
	{name: "Describes", run: testDescribes},
	{name: "Sizes", run: testSizes},
	{name: "Batches", run: testBatches},
	{name: "Metadata", run: testMetadata, not: []Quirk{Cable}},
	{name: "Duplex", run: testDuplex},
	{name: "Refuses", run: testRefuses},
	{name: "Short", run: testShort, not: []Quirk{NeverShort}},
	{name: "Stats", run: testStats},
	{name: "CloseWakes", run: testCloseWakes},
	{name: "CloseTwice", run: testCloseTwice},
	{name: "CloseFull", run: testCloseFull},
	{name: "CloseRace", run: testCloseRace},
	{name: "ClosePeer", run: testClosePeer, not: []Quirk{PeerUnseen}},
	{name: "Allocs", run: testAllocs},
}

// pair is a device under test.
type pair struct {
	a, b   link.Device
	quirks []Quirk
}

func (p *pair) has(q Quirk) bool { return slices.Contains(p.quirks, q) }

// alone reports whether the device is its own peer.
func (p *pair) alone() bool { return p.a == p.b }

// directions returns the pairs of sender and receiver.
func (p *pair) directions() [][2]link.Device {
	if p.alone() || p.has(OneWay) {
		return [][2]link.Device{{p.a, p.b}}
	}
	return [][2]link.Device{{p.a, p.b}, {p.b, p.a}}
}

// Run runs the suite. It must not run in parallel with another test, because it counts all frames
// of the process.
func Run(t *testing.T, open Make, quirks ...Quirk) {
	for _, test := range tests {
		if slices.ContainsFunc(quirks, func(q Quirk) bool { return slices.Contains(test.not, q) }) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			before := leak.Goroutines()
			link.Track(true)
			defer link.Track(false)
			p := &pair{quirks: quirks}
			p.a, p.b = open(t)
			test.run(t, p)
			closeEnd(t, p.a)
			closeEnd(t, p.b)
			if n := link.Outstanding(); n != 0 {
				t.Errorf("%d frames are leaked", n)
			}
			leak.Check(t, before)
		})
	}
}

func closeEnd(t *testing.T, d link.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("%s: Close: %v", d.Info().Name, err)
	}
}
