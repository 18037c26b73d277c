package blocktest

import (
	"fmt"
	"testing"

	"loam/block"
)

// Bench measures the cost of a device in nanoseconds per request of 4 KiB, for each operation and
// for different numbers of requests in one Submit.
func Bench(b *testing.B, open Make) {
	for _, op := range []block.Op{block.Read, block.Write, block.Flush} {
		for _, batch := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%v/batch%d", op, batch), func(b *testing.B) { bench(b, open(b), op, batch) })
		}
	}
}

func bench(b *testing.B, d block.Device, op block.Op, batch int) {
	defer d.Close()
	to := block.NewCompletions()
	rs := make([]*block.Request, batch)
	for i := range rs {
		rs[i] = &block.Request{Op: op, Offset: int64(i * block.MinTransfer), To: to}
		if op != block.Flush {
			rs[i].Data = [][]byte{make([]byte, block.MinTransfer)}
		}
	}
	back := make([]*block.Request, batch)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		d.Submit(0, rs)
		for k := 0; k < batch; {
			k += to.Wait(back)
		}
	}
}
