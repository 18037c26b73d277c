package crash_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/crash"
	"loam/block/memory"
	"loam/block/trace"
)

// A brute-force model. It has a short log and three sectors, and finds the possible states by
// trying all orders. A unit is one sector of one write. After a failure, the units are applied in
// any order, except that a unit of a write that had completed before another write was submitted is
// applied before the units of that write. Any unit may be lost, except those of durable writes.

const sector = 512

// The value of a sector is its first byte: the ID of a write, 0 for zeros, or junk for a sector that was torn.
const junk = 0xdb

// unit is one sector of a write in the model.
type unit struct {
	submitted, completed int
	durable              bool
	value                byte
}

const never = 1 << 30

// place returns the index in a log of the event with the given ID, which is a submission or a completion, or never if
// it is not in the log.
func place(log []trace.Event, id uint64, completed bool) int {
	i := slices.IndexFunc(log, func(e trace.Event) bool { return e.ID == id && e.Completed == completed })
	if i < 0 {
		return never
	}
	return i
}

func succeeded(log []trace.Event, id uint64) bool {
	at := place(log, id, true)
	return at != never && !log[at].Failed
}

// isDurable implements rules 3, 4 and 8 of the package comment of block.
func isDurable(log []trace.Event, w trace.Event) bool {
	if w.Op == block.Discard || !succeeded(log, w.ID) {
		return false
	}
	if w.Flags&block.FUA != 0 {
		return true
	}
	done := place(log, w.ID, true)
	for at, f := range log {
		if f.Completed || f.Op != block.Flush || done > at || !succeeded(log, f.ID) {
			continue
		}
		spoiled := false
		for other, g := range log[:at] {
			if !g.Completed && g.Op == block.Flush && done < other {
				end := place(log, g.ID, true)
				spoiled = spoiled || end < at && log[end].Failed
			}
		}
		if !spoiled {
			return true
		}
	}
	return false
}

// possible returns the values that a sector may have after a crash at the end of a log of requests.
func possible(log []trace.Event, at int64) map[byte]bool {
	var units []unit
	for i, e := range log {
		if e.Completed || !e.Op.Writes() || at < e.Offset || at >= e.Offset+e.Length {
			continue
		}
		value := byte(e.ID)
		switch e.Op {
		case block.WriteZeroes:
			value = 0
		case block.Discard:
			value = junk
		}
		units = append(units, unit{i, place(log, e.ID, true), isDurable(log, e), value})
	}
	values := map[byte]bool{}
	applyAll(units, 0xff, values)
	return values
}

// applyAll applies the units to a sector with the given value, in every order and with every loss that the rules
// allow. It adds the resulting values to values.
func applyAll(left []unit, value byte, values map[byte]bool) {
	if len(left) == 0 {
		values[value] = true
		return
	}
	for i, u := range left {
		if slices.ContainsFunc(left, func(o unit) bool { return o.completed < u.submitted }) {
			continue // another unit must be applied first
		}
		rest := slices.Delete(slices.Clone(left), i, i+1)
		applyAll(rest, u.value, values)
		if !u.durable {
			applyAll(rest, value, values)
		}
	}
}

const sectors = 3

// randomLog returns a log of a few requests that overlap in time and in sectors.
func randomLog(rng *rand.Rand) (log []trace.Event) {
	var open []uint64
	next := uint64(1)
	for len(log) < 14 {
		if len(open) > 0 && (rng.IntN(2) == 0 || next > 7) {
			i := rng.IntN(len(open))
			log = append(log, trace.Event{Completed: true, ID: open[i], Failed: rng.IntN(5) == 0})
			open = slices.Delete(open, i, i+1)
			continue
		}
		if next > 7 {
			break
		}
		e := trace.Event{ID: next, Op: []block.Op{block.Write, block.Write, block.Write, block.Flush, block.Flush, block.WriteZeroes, block.Discard}[rng.IntN(7)]}
		if e.Op != block.Flush {
			from := rng.Int64N(sectors)
			e.Offset, e.Length = from*sector, sector*(1+rng.Int64N(sectors-from))
			if e.Op == block.Write {
				e.Data = bytes.Repeat([]byte{byte(e.ID)}, int(e.Length))
			}
			if e.Op != block.Discard && rng.IntN(4) == 0 {
				e.Flags = block.FUA
			}
		}
		log, open, next = append(log, e), append(open, next), next+1
	}
	return log
}

// At every point of a log, the states that package crash generates have exactly the values that the model finds.
func TestAgainstModel(t *testing.T) {
	const logs, seeds = 100, 120
	for n := range uint64(logs) {
		log := randomLog(rand.New(rand.NewPCG(n, 0)))
		c := crash.New(memory.FromImage(bytes.Repeat([]byte{0xff}, sectors*sector), memory.Config{}), log)
		for more := true; more; {
			want := make([]map[byte]bool, sectors)
			got := make([]map[byte]bool, sectors)
			for s := range want {
				want[s], got[s] = possible(log[:c.At()], int64(s*sector)), map[byte]bool{}
			}
			states := []*memory.Device{c.Lost(), c.Kept()}
			for seed := range uint64(seeds) {
				states = append(states, c.State(seed))
			}
			for _, d := range states {
				image := d.Image()
				for s := range got {
					part := image[s*sector:][:sector]
					if part[0] != part[sector-1] {
						t.Fatalf("log %d: sector %d is torn", n, s)
					}
					got[s][part[0]] = true
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("log %d at %d: values %v, want %v: %+v", n, c.At(), got, want, log[:c.At()])
			}
			var err error
			if more, err = c.Next(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A seed chooses the same state each time.
func TestDeterministic(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(5, 0)))
	run := func() (images []string) {
		c := crash.New(memory.New(sectors*sector, memory.Config{}), log)
		for more := true; more; more, _ = c.Next() {
			for seed := range uint64(8) {
				images = append(images, string(c.State(seed).Image()))
			}
		}
		return images
	}
	if !slices.Equal(run(), run()) {
		t.Error("two runs of the same seeds differ")
	}
}

// A write of two sectors in the manner of a journal: block, flush, commit record, flush. The device is recorded and
// then cut at each point: the commit record is never present without the journaled block.
func TestJournal(t *testing.T) {
	base := memory.New(16*sector, memory.Config{})
	var log trace.Log
	d := trace.New(base.Snapshot(), &log)
	o := block.NewIO(d)
	for round := range byte(3) {
		p := bytes.Repeat([]byte{round + 1}, 2*sector)
		for _, step := range []func() error{
			func() error { _, err := o.WriteAt(p, 0); return err },
			o.Flush,
			func() error { _, err := o.WriteFUA(p[:sector], 4*sector); return err },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.Close()
	c := crash.New(base, log.Events())
	torn := 0
	for more := true; more; more, _ = c.Next() {
		for seed := range uint64(50) {
			b := c.State(seed).Image()
			if commit := b[4*sector]; b[0] < commit || b[sector] < commit {
				t.Fatalf("event %d, seed %d: commit %d of blocks %d, %d", c.At(), seed, commit, b[0], b[sector])
			}
			if b[0] != b[sector] {
				torn++
			}
		}
	}
	if torn == 0 {
		t.Error("no write was torn")
	}
}

// A log that does not fit the device is an error.
func TestBadLog(t *testing.T) {
	for _, e := range []trace.Event{
		{ID: 1, Op: block.Write, Offset: 512, Length: 512, Data: nil},
		{ID: 1, Op: block.WriteZeroes, Offset: 512 * sectors, Length: 512},
		{ID: 1, Op: block.Discard, Offset: 100, Length: 512},
	} {
		c := crash.New(memory.New(sectors*sector, memory.Config{}), []trace.Event{e})
		if _, err := c.Next(); err == nil {
			t.Errorf("%+v is accepted", e)
		}
	}
}

func BenchmarkState(b *testing.B) {
	base := memory.New(64<<20, memory.Config{})
	var log trace.Log
	d := trace.New(base.Snapshot(), &log)
	for i := range 200 {
		blocktest.Do(d, 0, block.Request{Op: block.Write, Offset: int64(i) << 15, Data: [][]byte{make([]byte, 4096)}})
	}
	d.Close()
	c := crash.New(base, log.Events())
	for more := true; more; more, _ = c.Next() {
	}
	b.ResetTimer()
	for i := range b.N {
		c.State(uint64(i))
	}
}
