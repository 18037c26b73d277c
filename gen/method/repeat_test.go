//go:build linux

package method

import (
	"net"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/internal/race"
)

// A repeated frame arrives unchanged and as often as requested, with other frames sent in between. Repeating
// allocates no memory.
func TestRepeat(t *testing.T) {
	for _, name := range []string{"udp", "mmsg", "raw", "pcap", "packet", "ring", "xdp"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.listen(t, "ring")
			m, _ := ByName(name)
			l.config.Plain = true
			s, err := m.Open(l.config)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			same := make([]byte, 200)
			same = same[:l.put(same, m.Layer, []byte("the same"))]
			const rounds, times = 20, 100 // 2000 frames, more than any ring has slots
			for i := range rounds {
				n, err := s.(Repeater).Repeat(same, times)
				if err != nil || n != times {
					t.Fatal(n, err)
				}
				if n, err = s.Send(1, func(slot []byte) int { return l.put(slot, m.Layer, body(i)) }); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}
			if err := s.Flush(5 * time.Second); err != nil {
				t.Fatal(err)
			}
			const all = rounds * (times + 1)
			if c := s.Counters(); c.Handed != all || c.Left != all || c.Refused != 0 {
				t.Errorf("%+v, want %d", c, all)
			}
			got := collect(t, r, all)
			if len(got) != all || r.Drops() != 0 {
				t.Fatalf("%d of %d arrived, %d dropped", len(got), all, r.Drops())
			}
			for i, p := range got {
				want := "the same"
				if i%(times+1) == times {
					want = string(body(i / (times + 1)))
				}
				if len(p) < len(want) || p[:len(want)] != want {
					t.Fatalf("frame %d is %.20q, want %.20q", i, p, want)
				}
			}
			if n, err := s.(Repeater).Repeat(make([]byte, 9000), 5); name == "xdp" && (n != 0 || err != nil || s.Counters().Refused != 5) {
				t.Errorf("%d frames that are too long went, %v", n, err)
			}
			if race.Enabled {
				return // with the race detector, sync.Pool drops entries on purpose
			}
			if allocs := testing.AllocsPerRun(50, func() { s.(Repeater).Repeat(same, 64) }); allocs > 0 {
				t.Errorf("%v allocations for 64 frames", allocs)
			}
		})
	}
}

// Errors of the kernel do not end a Repeat: an ICMP error about an earlier datagram is ignored, and every frame
// that the kernel refuses is still attempted.
func TestRepeatContinues(t *testing.T) {
	netns.Need(t)
	netns.IP(t, "link", "set", "lo", "up")
	closed, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.LocalAddr().(*net.UDPAddr).AddrPort()
	closed.Close()
	s, err := openUDP(Config{Destination: nobody})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const times = 40
	if n, err := s.(Repeater).Repeat([]byte("to nobody"), times); n != times || err != nil {
		t.Errorf("%d sent, %v", n, err)
	}
	if c := s.Counters(); c.Handed != times || c.Kicks <= times {
		t.Errorf("%+v: every second call should have told of a closed port", c)
	}
	if n, err := s.(Repeater).Repeat(make([]byte, 1<<16), times); n != 0 || err != nil || s.Counters().Refused != times {
		t.Errorf("%d datagrams that are too long went, %v: %+v", n, err, s.Counters())
	}
}
