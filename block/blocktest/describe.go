package blocktest

import (
	"testing"

	"loam/block"
)

func isPower(n int) bool { return n > 0 && n&(n-1) == 0 }

// Info returns the same values each time, and its fields are consistent.
func testDescribes(t *testing.T, d block.Device) {
	i := d.Info()
	if i != d.Info() || i.Name == "" {
		t.Errorf("Info = %+v, then %+v", i, d.Info())
	}
	if !isPower(i.LogicalSector) || i.LogicalSector < 512 || !isPower(i.PhysicalSector) || i.PhysicalSector < i.LogicalSector {
		t.Errorf("sectors of %d and %d bytes", i.LogicalSector, i.PhysicalSector)
	}
	if i.MaxTransfer < block.MinTransfer || i.MaxTransfer%i.LogicalSector != 0 || i.MaxSegments < 1 {
		t.Errorf("at most %d bytes in %d pieces", i.MaxTransfer, i.MaxSegments)
	}
	if !isPower(i.MemoryAlign) || i.Depth < 1 || d.Queues() < 1 || i.MaxDiscard < 0 || i.MaxZeroes < 0 || i.Timeout < 0 {
		t.Errorf("Info = %+v with %d queues", i, d.Queues())
	}
	if d.Size()%int64(i.LogicalSector) != 0 {
		t.Errorf("%d bytes in sectors of %d", d.Size(), i.LogicalSector)
	}
}

// The largest request is accepted, and a larger one is not.
func testLimits(t *testing.T, d block.Device) {
	i := d.Info()
	n := int(min(int64(i.MaxTransfer), d.Size()/2))
	p := fill(make([]byte, n), 1)
	must(t, d, 0, block.Request{Op: block.Write, Data: [][]byte{p}})
	got := make([]byte, n)
	must(t, d, 0, block.Request{Op: block.Read, Data: [][]byte{got}})
	if string(got) != string(p) {
		t.Error("the largest request read other data than was written")
	}
	large := make([]byte, i.MaxTransfer+i.LogicalSector)
	wantError(t, "a read that is too long", Do(d, 0, block.Request{Op: block.Read, Data: [][]byte{large}}), block.ErrInvalid)
	var many [][]byte
	for range i.MaxSegments {
		many = append(many, make([]byte, i.LogicalSector))
	}
	if len(many)*i.LogicalSector <= i.MaxTransfer && int64(len(many)*i.LogicalSector) <= d.Size() {
		must(t, d, 0, block.Request{Op: block.Read, Data: many})
	}
	many = append(many, make([]byte, i.LogicalSector))
	wantError(t, "a read of too many pieces", Do(d, 0, block.Request{Op: block.Read, Data: many}), block.ErrInvalid)
}

// An invalid request comes back with the reason; the other requests of the batch are carried out.
func testRejects(t *testing.T, d block.Device) {
	i, size := d.Info(), d.Size()
	sector := int64(i.LogicalSector)
	one := [][]byte{make([]byte, sector)}
	for name, c := range map[string]struct {
		r    block.Request
		want error
	}{
		"an unknown operation":     {block.Request{Op: block.Ops}, block.ErrInvalid},
		"an unknown flag":          {block.Request{Op: block.Read, Data: one, Flags: 0x80}, block.ErrInvalid},
		"no data":                  {block.Request{Op: block.Read}, block.ErrInvalid},
		"an empty piece":           {block.Request{Op: block.Read, Data: [][]byte{one[0], {}}}, block.ErrInvalid},
		"half a sector":            {block.Request{Op: block.Write, Data: [][]byte{one[0][:sector/2]}}, block.ErrInvalid},
		"inside a sector":          {block.Request{Op: block.Write, Data: one, Offset: sector / 2}, block.ErrInvalid},
		"before the beginning":     {block.Request{Op: block.Read, Data: one, Offset: -sector}, block.ErrRange},
		"at the end":               {block.Request{Op: block.Read, Data: one, Offset: size}, block.ErrRange},
		"across the end":           {block.Request{Op: block.Write, Data: [][]byte{make([]byte, 2*sector)}, Offset: size - sector}, block.ErrRange},
		"an offset that overflows": {block.Request{Op: block.Read, Data: one, Offset: 1<<62 + 1<<61}, block.ErrRange},
	} {
		good := block.Request{Op: block.Read, Data: [][]byte{make([]byte, sector)}, To: block.NewCompletions()}
		bad := c.r
		bad.To = good.To
		d.Submit(0, []*block.Request{&bad, &good})
		for n := 0; n < 2; {
			n += good.To.Wait(make([]*block.Request, 2))
		}
		wantError(t, name, bad.Err, c.want)
		wantError(t, "the request behind "+name, good.Err, nil)
	}
	testRejectsRanges(t, d, i)
}

// A device that lacks an operation (Discard, WriteZeroes) returns ErrUnsupported for it.
func testRejectsRanges(t *testing.T, d block.Device, i block.Info) {
	for op, most := range map[block.Op]int64{block.Discard: i.MaxDiscard, block.WriteZeroes: i.MaxZeroes} {
		r := block.Request{Op: op, Length: int64(i.LogicalSector)}
		if most == 0 {
			wantError(t, op.String(), Do(d, 0, r), block.ErrUnsupported)
			continue
		}
		r.Length = 0
		wantError(t, op.String()+" of nothing", Do(d, 0, r), block.ErrInvalid)
		r.Length, r.Offset = int64(i.LogicalSector), d.Size()
		wantError(t, op.String()+" at the end", Do(d, 0, r), block.ErrRange)
	}
}
