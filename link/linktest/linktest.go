// Package linktest is the suite that every device and every wrapper of a device
// passes. Read link/device.go first: each test here is one of its promises.
//
// A device under test comes as two connected ends. A test moves frames in
// windows that are small enough for any device, ends with both ends closed, and
// then no frame and no goroutine may be left. There is no waiting for a time: a
// broken promise shows as a wrong value, or as a test that hangs with the
// promise on its stack.
package linktest

import (
	"slices"
	"testing"

	"loam/link"
)

// Make opens two connected ends: what a sends b receives, and the other way
// round. A device that is its own peer is returned twice. Make may register a
// Cleanup; the ends themselves are closed by the suite.
type Make func(t testing.TB) (a, b link.Device)

// Quirk is a promise that a device cannot keep, for a reason outside of Loam.
type Quirk int

// Quirks.
const (
	// NeverShort: Send always finds room. What nobody reads is lost on the way,
	// as on a wire.
	NeverShort Quirk = iota + 1
	// PeerUnseen: an end does not learn that the other one was closed.
	PeerUnseen
	// OneWay: only a sends and only b receives with the device under test; the
	// other directions belong to a peer of the test.
	OneWay
)

// test is one promise.
type test struct {
	name string
	run  func(t *testing.T, p *pair)
	not  []Quirk // does not apply to a device with one of these
}

var tests = []test{
	{name: "Describes", run: testDescribes},
	{name: "Sizes", run: testSizes},
	{name: "Batches", run: testBatches},
	{name: "Metadata", run: testMetadata},
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

// pair is what a test works on.
type pair struct {
	a, b   link.Device
	quirks []Quirk
}

func (p *pair) has(q Quirk) bool { return slices.Contains(p.quirks, q) }

// alone reports whether the device is its own peer.
func (p *pair) alone() bool { return p.a == p.b }

// directions are the ways that frames go.
func (p *pair) directions() [][2]link.Device {
	if p.alone() || p.has(OneWay) {
		return [][2]link.Device{{p.a, p.b}}
	}
	return [][2]link.Device{{p.a, p.b}, {p.b, p.a}}
}

// Run runs the suite. It must not run in parallel with another test, since it
// counts all frames of the process.
func Run(t *testing.T, open Make, quirks ...Quirk) {
	for _, test := range tests {
		if slices.ContainsFunc(quirks, func(q Quirk) bool { return slices.Contains(test.not, q) }) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			before := goroutines()
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
			checkGoroutines(t, before)
		})
	}
}

func closeEnd(t *testing.T, d link.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("%s: Close: %v", d.Info().Name, err)
	}
}
