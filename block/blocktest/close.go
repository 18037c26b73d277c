package blocktest

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"loam/block"
	"loam/internal/race"
)

// The blocking calls work at the end of the device, and split long transfers.
func testBlocking(t *testing.T, d block.Device) {
	o := block.NewIO(d)
	sector := d.Info().LogicalSector
	end := d.Size()
	p := make([]byte, 2*sector)
	if n, err := o.ReadAt(p, end-int64(sector)); n != sector || err != io.EOF {
		t.Errorf("ReadAt across the end = %d, %v; want %d, EOF", n, err, sector)
	}
	if n, err := o.ReadAt(p, end); n != 0 || err != io.EOF {
		t.Errorf("ReadAt at the end = %d, %v; want 0, EOF", n, err)
	}
	n, err := o.WriteAt(p, end-int64(sector))
	if wantError(t, "WriteAt across the end", err, block.ErrRange); n != 0 {
		t.Errorf("WriteAt across the end wrote %d bytes", n)
	}
	long := fill(make([]byte, min(end, MinSize)), 8)
	write(t, d, long, 0)
	if string(read(t, d, len(long), 0)) != string(long) {
		t.Error("a long transfer reads other data than was written")
	}
}

// WritePieces writes every piece, and combines adjacent ones. If a request fails, it returns the error after all others have
// come back.
func testPieces(t *testing.T, d block.Device) {
	o, i := block.NewIO(d), d.Info()
	sector, rng := int64(i.LogicalSector), rand.New(rand.NewPCG(1, 2))
	want := fill(make([]byte, min(d.Size(), MinSize)), 9)
	write(t, d, want, 0)
	var all []block.Piece
	for at := int64(0); at < int64(len(want)); {
		n := sector * (1 + rng.Int64N(16))
		if rng.IntN(20) == 0 {
			n = int64(i.MaxTransfer) + sector
		}
		n = min(n, int64(len(want))-at)
		if rng.IntN(3) > 0 {
			all = append(all, block.Piece{Offset: at, Data: fill(want[at:at+n:at+n], uint64(at)+10)})
		}
		at += n
	}
	if err := o.WritePieces(all); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, len(want), 0); string(got) != string(want) {
		t.Error("the device does not have what WritePieces wrote")
	}
	before := d.Stats().Done[block.Write]
	two := []block.Piece{{Offset: 0, Data: want[:sector]}, {Offset: sector, Data: want[sector : 2*sector]}}
	if err := o.WritePieces(two); err != nil || i.MaxSegments > 1 && d.Stats().Done[block.Write] != before+1 {
		t.Errorf("two adjacent pieces: %v, %d requests", err, d.Stats().Done[block.Write]-before)
	}
	if err := o.WritePieces(nil); err != nil {
		t.Errorf("no pieces: %v", err)
	}
	wantError(t, "a piece beyond the end", o.WritePieces(append(two, block.Piece{Offset: d.Size(), Data: want[:sector]})), block.ErrRange)
}

// The device's counters (block.Stats) count the requests and bytes.
func testCounts(t *testing.T, d block.Device) {
	sector := d.Info().LogicalSector
	before, began := d.Stats(), time.Now()
	p := make([]byte, 2*sector)
	must(t, d, 0, block.Request{Op: block.Write, Data: [][]byte{p}})
	must(t, d, 0, block.Request{Op: block.Read, Data: [][]byte{p}})
	must(t, d, 0, block.Request{Op: block.Flush})
	Do(d, 0, block.Request{Op: block.Ops})
	s := d.Stats()
	for _, op := range []block.Op{block.Read, block.Write, block.Flush} {
		if n := s.Done[op] - before.Done[op]; n != 1 {
			t.Errorf("%d requests counted for one %v", n, op)
		}
	}
	if s.ReadBytes-before.ReadBytes != uint64(len(p)) || s.WriteBytes-before.WriteBytes != uint64(len(p)) || s.Rejected-before.Rejected != 1 {
		t.Errorf("counters went from %+v to %+v", before, s)
	}
	if s.InFlight != 0 || s.Busy-before.Busy > time.Since(began) {
		t.Errorf("%d requests are in flight, the device was busy for %v", s.InFlight, s.Busy)
	}
}

// Close returns every request; later requests fail with ErrClosed.
func testCloseReturns(t *testing.T, d block.Device) {
	sector := d.Info().LogicalSector
	to := block.NewCompletions()
	const n = 300
	rs := make([]*block.Request, n)
	for i := range rs {
		rs[i] = &block.Request{Op: block.Write, Offset: int64(i % 100 * sector), Data: [][]byte{make([]byte, sector)}, To: to}
	}
	d.Submit(0, rs)
	d.Close()
	back := make([]*block.Request, n)
	got := 0
	for k := to.Take(back); k > 0; k = to.Take(back) {
		got += k
	}
	if got != n {
		t.Errorf("%d of %d requests came back before Close returned", got, n)
	}
	for _, r := range rs {
		if r.Err != nil && !errors.Is(r.Err, block.ErrClosed) {
			t.Errorf("a request in flight came back with %v", r.Err)
		}
	}
	checkClosed(t, d)
}

func checkClosed(t *testing.T, d block.Device) {
	t.Helper()
	for q := range d.Queues() {
		wantError(t, "Flush after Close", Do(d, q, block.Request{Op: block.Flush}), block.ErrClosed)
		r := block.Request{Op: block.Read, Data: [][]byte{make([]byte, d.Info().LogicalSector)}}
		wantError(t, "Read after Close", Do(d, q, r), block.ErrClosed)
	}
}

// Close may be called again, and from several goroutines.
func testCloseTwice(t *testing.T, d block.Device) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	all.Wait()
	checkClosed(t, d)
}

// Close may be called at any time while requests are in flight.
func testCloseRace(t *testing.T, d block.Device) {
	var all sync.WaitGroup
	started := make(chan struct{}, 4) // each worker sends a value after its first request
	for w := range 4 {
		all.Go(func() {
			p := make([]byte, d.Info().LogicalSector)
			for n := 0; ; n++ {
				op := block.Op(n % 3)
				r := block.Request{Op: op, Offset: int64(w * len(p))}
				if op != block.Flush {
					r.Data = [][]byte{p}
				}
				err := Do(d, w%d.Queues(), r)
				if n == 0 {
					started <- struct{}{}
				}
				if err != nil {
					wantError(t, "a request while the device closes", err, block.ErrClosed)
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	d.Close()
	all.Wait()
}

// A request allocates no heap memory, unless the device has the quirk Allocates.
func testAllocs(t *testing.T, d block.Device) {
	if race.Enabled {
		return
	}
	to := block.NewCompletions()
	p := make([]byte, block.MinTransfer)
	rs := make([]*block.Request, 8)
	for i := range rs {
		rs[i] = &block.Request{Op: block.Op(i % 3), Offset: int64(i * len(p)), To: to}
		if rs[i].Op != block.Flush {
			rs[i].Data = [][]byte{p}
		}
	}
	back := make([]*block.Request, len(rs))
	round := func() {
		d.Submit(0, rs)
		for n := 0; n < len(rs); {
			n += to.Wait(back)
		}
	}
	for range 10 { // warm up: the device may allocate buffers in the first rounds
		round()
	}
	if n := testing.AllocsPerRun(50, round); n >= 1 {
		t.Errorf("%v allocations for %d requests", n, len(rs))
	}
}
