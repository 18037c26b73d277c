package freeport

import (
	"net/netip"
	"sync"
	"testing"
)

// Concurrent tests get different ports.
func TestNext(t *testing.T) {
	var all sync.Map
	var side sync.WaitGroup
	for range 4 {
		side.Go(func() {
			for range 100 {
				at, err := Next()
				if err != nil || at.Addr() != netip.MustParseAddr("127.0.0.1") || at.Port() < first || at.Port() >= first+count {
					t.Errorf("%v, %v", at, err)
				}
				if _, twice := all.LoadOrStore(at, true); twice {
					t.Errorf("%v twice", at)
				}
			}
		})
	}
	side.Wait()
}
