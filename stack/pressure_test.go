package stack

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/stack/flood"
)

// If a receiver gets full batches many times in a row, the stack counts as overloaded: hosts that wait for replies do not
// send at such a rate. For a second, the stack then limits the packets of strangers (hosts without a connection or socket
// here), but not those of known peers.
func TestStrangersGetLittleUnderPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Shards: 1})
		defer s.Close()
		r := &receiver{ifc: &Interface{stack: s}}
		stranger, friend := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.8")
		allowed := func(peer netip.Addr) (n int) {
			s.shards[0].request(func(sh *shard) {
				for range 1000 {
					if sh.allowPressed(peer) {
						n++
					}
				}
			})
			return n
		}
		s.shards[0].request(func(sh *shard) { sh.know(friend) })
		batches := func(n, frames int) {
			for range n {
				r.notePressure(frames)
			}
		}
		batches(fullBatches-1, link.BatchSize)
		batches(1, link.BatchSize-1)
		batches(fullBatches-1, link.BatchSize)
		if n := allowed(stranger); n != 1000 {
			t.Errorf("before there is pressure, %d of 1000 are allowed", n)
		}
		batches(1, link.BatchSize)
		if n := allowed(stranger); n != flood.PressedBurst {
			t.Errorf("under pressure, %d of 1000 are allowed, want %d", n, flood.PressedBurst)
		}
		if n := allowed(friend); n != 1000 {
			t.Errorf("under pressure, %d of 1000 of a known peer are allowed", n)
		}
		time.Sleep(pressedFor)
		if n := allowed(stranger); n != 1000 {
			t.Errorf("a second later, %d of 1000 are allowed", n)
		}
	})
}
