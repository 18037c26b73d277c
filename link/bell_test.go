package link

import (
	"sync"
	"testing"
)

func TestBellHasOnePlace(t *testing.T) {
	b := NewBell()
	b.Ring()
	b.Ring()
	<-b.C()
	select {
	case <-b.C():
		t.Error("rang twice for a waiter that came late")
	default:
	}
}

func TestBellCloses(t *testing.T) {
	b := NewBell()
	b.Close()
	b.Close()
	b.Ring()
	if _, open := <-b.C(); open {
		t.Error("rang instead of closing")
	}
}

// Ring and Close of a Bell may run at the same time. Ring never sends on a channel that Close has closed.
func TestBellRace(t *testing.T) {
	b := NewBell()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				b.Ring()
			}
		})
	}
	all.Go(b.Close)
	all.Wait()
}
