package stack_test

import (
	"testing"
	"testing/synctest"

	"loam/link"
	"loam/link/fault"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
)

// The counters of both ends show how losses were repaired.
func TestLossIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		ring.Track(true)
		near, far := pipe.New(pipe.Config{})
		bad := fault.New(near, fault.Config{Seed: 1, Send: fault.Direction{Loss: 0.05, Duplicate: 0.05}})
		a := newHost(t, stack.Config{Shards: 1}, bad, addrA)
		b := newHost(t, stack.Config{Shards: 1}, far, addrB)
		t.Cleanup(func() {
			a.Close()
			b.Close()
			checkLeaks(t)
		})
		if err := exchange(a, b, "10.0.0.2:80", 300_000); err != nil {
			t.Fatal(err)
		}
		sent, received := a.Counters(), b.Counters()
		for _, which := range []stack.Counter{stack.TCPRetransmits, stack.TCPFastRecoveries} {
			if sent.Get(which) == 0 {
				t.Errorf("the sender counts no %v:\n%s", which, &sent)
			}
		}
		for _, which := range []stack.Counter{stack.TCPOutOfOrder, stack.TCPDuplicates} {
			if received.Get(which) == 0 {
				t.Errorf("the receiver counts no %v:\n%s", which, &received)
			}
		}
	})
}
