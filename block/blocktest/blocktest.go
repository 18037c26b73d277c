// Package blocktest is the test suite for block devices and their wrappers. Read the package
// comment of block first: each test here checks one of its guarantees.
//
// Each test opens a new device, moves sectors, and closes it; after that no goroutine may be left.
// Tests assume nothing about the contents of a new device. They do not wait for a period of time: a
// violation shows as a wrong value, or as a test that hangs with the violated guarantee on its
// stack.
package blocktest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"loam/block"
	"loam/internal/leak"
)

// Make opens a writable device of at least MinSize bytes. The suite closes it. Make may register a
// Cleanup.
type Make func(t testing.TB) block.Device

// MinSize is the size in bytes of the smallest device that the suite can test.
const MinSize = 1 << 20

// Quirk is a guarantee that a device cannot give, for a reason outside of Loam.
type Quirk int

// Values of Quirk: deviations from the interface that the suite accepts.
const (
	// Allocates: a request allocates heap memory.
	Allocates Quirk = iota + 1
)

// test checks one guarantee.
type test struct {
	name string
	run  func(t *testing.T, d block.Device)
	not  []Quirk // the test is skipped for a device with one of these quirks
}

var tests = []test{
	{name: "Describes", run: testDescribes},
	{name: "Transfers", run: testTransfers},
	{name: "Limits", run: testLimits},
	{name: "Rejects", run: testRejects},
	{name: "Batches", run: testBatches},
	{name: "Queues", run: testQueues},
	{name: "Visible", run: testVisible},
	{name: "Durable", run: testDurable},
	{name: "Zeroes", run: testZeroes},
	{name: "Discards", run: testDiscards},
	{name: "Blocking", run: testBlocking},
	{name: "Pieces", run: testPieces},
	{name: "Counts", run: testCounts},
	{name: "CloseReturns", run: testCloseReturns},
	{name: "CloseTwice", run: testCloseTwice},
	{name: "CloseRace", run: testCloseRace},
	{name: "Allocs", run: testAllocs, not: []Quirk{Allocates}},
}

// Run runs the suite.
func Run(t *testing.T, open Make, quirks ...Quirk) {
	for _, test := range tests {
		if slices.ContainsFunc(quirks, func(q Quirk) bool { return slices.Contains(test.not, q) }) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			before := leak.Goroutines()
			t.Cleanup(func() { leak.Check(t, before) }) // this cleanup runs after the cleanups of the function open, which close the device
			d := open(t)
			if d.Size() < MinSize {
				t.Fatalf("%d bytes are too few for the suite", d.Size())
			}
			test.run(t, d)
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// Do submits one request to a queue and returns its result.
func Do(d block.Device, queue int, r block.Request) error {
	r.To = block.NewCompletions()
	d.Submit(queue, []*block.Request{&r})
	var back [1]*block.Request
	r.To.Wait(back[:])
	return r.Err
}

// must is Do, but fails the test on an error.
func must(t *testing.T, d block.Device, queue int, r block.Request) {
	t.Helper()
	if err := Do(d, queue, r); err != nil {
		t.Fatalf("%v of %d bytes at %d on queue %d: %v", r.Op, r.Bytes(), r.Offset, queue, err)
	}
}

// fill fills p with bytes that differ from sector to sector and from seed to seed.
func fill(p []byte, seed uint64) []byte {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	rng.Read(p)
	return p
}

// pieces cuts p into up to n parts of whole sectors.
func pieces(p []byte, sector, n int, rng *rand.Rand) (parts [][]byte) {
	for len(p) > 0 {
		k := len(p)
		if len(parts) < n-1 {
			k = min(k, sector*(1+rng.IntN(8)))
		}
		parts, p = append(parts, p[:k]), p[k:]
	}
	return parts
}

// write stores p at an offset, in requests within the device's limits.
func write(t *testing.T, d block.Device, p []byte, at int64) {
	t.Helper()
	if n, err := block.NewIO(d).WriteAt(p, at); n != len(p) || err != nil {
		t.Fatalf("WriteAt(%d bytes, %d) = %d, %v", len(p), at, n, err)
	}
}

// read returns n bytes at an offset.
func read(t *testing.T, d block.Device, n int, at int64) []byte {
	t.Helper()
	p := fill(make([]byte, n), 99)
	if k, err := block.NewIO(d).ReadAt(p, at); k != n || err != nil {
		t.Fatalf("ReadAt(%d bytes, %d) = %d, %v", n, at, k, err)
	}
	return p
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
