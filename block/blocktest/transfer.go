package blocktest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"loam/block"
)

// span is the number of bytes of the device that a test uses.
const span = 256 << 10

// Data is read back as it was written, for every length, offset, alignment in memory and number of
// pieces.
func testTransfers(t *testing.T, d block.Device) { transfers(t, d, 0, 0, span, 100) }

// transfers does random writes and reads in [from, from+size) on one queue, and
// compares them with a copy in memory.
func transfers(t *testing.T, d block.Device, queue int, from, size int64, rounds int) {
	i := d.Info()
	rng := rand.New(rand.NewPCG(uint64(queue), uint64(from)))
	want := fill(make([]byte, size), uint64(from))
	write(t, d, want, from)
	sector := int64(i.LogicalSector)
	for round := range rounds {
		n := sector * (1 + rng.Int64N(min(size, int64(i.MaxTransfer))/sector))
		at := sector * rng.Int64N((size-n)/sector+1)
		memory := make([]byte, n+64)[rng.IntN(64):]
		p := memory[:n:n]
		r := block.Request{Op: block.Op(round % 2), Offset: from + at}
		if r.Op == block.Write {
			copy(want[at:], fill(p, uint64(round)))
		}
		r.Data = pieces(p, int(sector), min(i.MaxSegments, 16), rng)
		must(t, d, queue, r)
		if !bytes.Equal(p, want[at:at+n]) {
			t.Fatalf("round %d: %d bytes at %d differ after a %v", round, n, from+at, r.Op)
		}
	}
	if !bytes.Equal(read(t, d, int(size), from), want) {
		t.Errorf("%d bytes at %d are not what was written", size, from)
	}
}

// More requests than Info.Depth may be in flight, and each comes back once.
func testBatches(t *testing.T, d block.Device) {
	i := d.Info()
	sector := i.LogicalSector
	n := min(4*i.Depth+100, int(d.Size())/sector, 1000)
	to := block.NewCompletions()
	data := fill(make([]byte, n*sector), 3)
	for _, op := range []block.Op{block.Write, block.Read} {
		rs := make([]*block.Request, n)
		for k := range rs {
			rs[k] = &block.Request{Op: op, Offset: int64(k * sector), Data: [][]byte{data[k*sector:][:sector:sector]}, To: to, Tag: k}
		}
		d.Submit(0, rs)
		checkBack(t, to, n)
		clear(data)
	}
	d.Submit(0, nil)
	if got := read(t, d, n*sector, 0); !bytes.Equal(got, fill(make([]byte, n*sector), 3)) {
		t.Error("the sectors are not what was written")
	}
}

// checkBack receives n requests and checks that their tags are 0 to n-1.
func checkBack(t *testing.T, to *block.Completions, n int) {
	t.Helper()
	seen := make([]bool, n)
	batch := make([]*block.Request, 7)
	for left := n; left > 0; {
		k := to.Wait(batch)
		left -= k
		for _, r := range batch[:k] {
			if at := r.Tag.(int); r.Err != nil || seen[at] {
				t.Fatalf("request %d came back (before: %v) with %v", at, seen[at], r.Err)
			} else {
				seen[at] = true
			}
		}
	}
	if k := to.Take(batch); k != 0 {
		t.Errorf("%d requests came back that were not in flight", k)
	}
}

// All queues of a device work at the same time, each with several goroutines that write and read.
func testQueues(t *testing.T, d block.Device) {
	var all sync.WaitGroup
	workers := 2 * d.Queues()
	part := (d.Size() / int64(workers)) &^ int64(d.Info().PhysicalSector-1)
	for w := range workers {
		all.Go(func() { transfers(t, d, w%d.Queues(), int64(w)*part, min(part, span/4), 20) })
	}
	all.Wait()
}

// A write that has completed is visible on every queue.
func testVisible(t *testing.T, d block.Device) {
	sector := d.Info().LogicalSector
	for q := range d.Queues() {
		p := fill(make([]byte, sector), uint64(q)+40)
		must(t, d, q, block.Request{Op: block.Write, Offset: int64(sector), Data: [][]byte{p}})
		for other := range d.Queues() {
			got := make([]byte, sector)
			must(t, d, other, block.Request{Op: block.Read, Offset: int64(sector), Data: [][]byte{got}})
			if !bytes.Equal(got, p) {
				t.Errorf("queue %d does not see what queue %d wrote", other, q)
			}
		}
	}
}

// Flush and FUA succeed on every device. Tests of durability need a power failure: see block/crash.
func testDurable(t *testing.T, d block.Device) {
	sector := d.Info().LogicalSector
	p := fill(make([]byte, sector), 7)
	must(t, d, 0, block.Request{Op: block.Flush})
	must(t, d, 0, block.Request{Op: block.Write, Data: [][]byte{p}, Flags: block.FUA})
	must(t, d, d.Queues()-1, block.Request{Op: block.Flush})
	if d.Info().MaxZeroes > 0 {
		must(t, d, 0, block.Request{Op: block.WriteZeroes, Offset: int64(sector), Length: int64(sector), Flags: block.FUA})
	}
	if !bytes.Equal(read(t, d, sector, 0), p) {
		t.Error("a write with FUA stored something else")
	}
}

// WriteZeroes clears the requested sectors and no others.
func testZeroes(t *testing.T, d block.Device) {
	for _, flags := range []block.Flags{0, block.KeepAllocated, block.FUA} {
		want := fill(make([]byte, span), 5)
		write(t, d, want, 0)
		sector := int64(d.Info().LogicalSector)
		io := block.NewIO(d)
		for _, r := range [][2]int64{{sector, sector}, {16 << 10, 64 << 10}, {128<<10 + sector, 72 << 10}} {
			if err := io.WriteZeroes(r[0], r[1], flags); err != nil {
				t.Fatalf("WriteZeroes(%d, %d): %v", r[0], r[1], err)
			}
			clear(want[r[0] : r[0]+r[1]])
		}
		if !bytes.Equal(read(t, d, span, 0), want) {
			t.Errorf("flags %#x: the contents are not zeros in the ranges, or changed outside", flags)
		}
	}
}

// A discard leaves other sectors unchanged, and the discarded ones can be written.
func testDiscards(t *testing.T, d block.Device) {
	if d.Info().MaxDiscard == 0 {
		return
	}
	want := fill(make([]byte, span), 6)
	write(t, d, want, 0)
	const from, n = 64 << 10, 96 << 10
	if err := block.NewIO(d).Discard(from, n); err != nil {
		t.Fatal(err)
	}
	got := read(t, d, span, 0)
	if !bytes.Equal(got[:from], want[:from]) || !bytes.Equal(got[from+n:], want[from+n:]) {
		t.Error("a discard changed sectors outside its range")
	}
	write(t, d, want[from:from+n], from)
	if !bytes.Equal(read(t, d, span, 0), want) {
		t.Error("discarded sectors do not keep what is written to them")
	}
}
