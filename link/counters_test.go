package link

import (
	"sync"
	"testing"
)

// Every counter is reported in its own field when several goroutines add to it, and Add adds all
// fields.
func TestCounters(t *testing.T) {
	var c Counters
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			c.Received(1, 10)
			c.Sent(2, 20)
			c.RxDropped(3)
			c.TxDropped(4)
			c.RxError()
			c.TxError()
		})
	}
	all.Wait()
	want := Stats{RxFrames: 10, RxBytes: 100, TxFrames: 20, TxBytes: 200, RxDropped: 30, TxDropped: 40, RxErrors: 10, TxErrors: 10}
	got := c.Stats()
	if got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
	got.Add(want)
	if want := (Stats{RxFrames: 20, RxBytes: 200, TxFrames: 40, TxBytes: 400, RxDropped: 60, TxDropped: 80, RxErrors: 20, TxErrors: 20}); got != want {
		t.Errorf("Add: %+v, want %+v", got, want)
	}
}
