package crew

import (
	"sync/atomic"
	"testing"
)

// Wait waits for all goroutines, and returns at once if there are none.
func TestWait(t *testing.T) {
	var c Crew
	c.Wait()
	var ended atomic.Int32
	gate := make(chan struct{})
	for range 3 {
		c.Start(func() {
			<-gate
			ended.Add(1)
		})
	}
	close(gate)
	c.Wait()
	if n := ended.Load(); n != 3 {
		t.Errorf("%d have ended of 3", n)
	}
}
