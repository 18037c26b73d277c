package stack

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"loam/wire"
)

// RFC 6864 section 4.3: identifications between two hosts do not repeat, whichever
// goroutine sends.
func TestIdentificationsOfManySendersDiffer(t *testing.T) {
	s := New(Config{Shards: 1})
	defer s.Close()
	src, dst := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	const senders, each = 4, 10_000
	var ids [senders][each]uint16
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range each {
				ids[i][j] = s.nextID(src, dst, wire.ProtoUDP)
			}
		})
	}
	wg.Wait()
	seen := map[uint16]bool{}
	for i := range senders {
		for _, id := range ids[i] {
			seen[id] = true
		}
	}
	// A counter also advances by up to one per millisecond. If the test runs for a second, the counter may have
	// wrapped around, so a few identifications may repeat.
	if len(seen) < senders*each {
		t.Errorf("%d packets have %d identifications", senders*each, len(seen))
	}
}

// BenchmarkIdentifications allocates identifications on as many goroutines as there are processors, each for another
// host.
func BenchmarkIdentifications(b *testing.B) {
	s := New(Config{Shards: 1})
	defer s.Close()
	src := netip.MustParseAddr("192.0.2.1")
	var senders atomic.Uint32
	b.RunParallel(func(p *testing.PB) {
		dst := netip.AddrFrom4([4]byte{10, 0, 0, byte(senders.Add(1))})
		for p.Next() {
			s.nextID(src, dst, wire.ProtoUDP)
		}
	})
}
