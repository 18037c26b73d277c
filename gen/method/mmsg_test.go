//go:build linux

package method

import (
	"testing"
	"time"

	"loam/internal/netns"
)

// Consecutive datagrams of equal length are sent as one message that the kernel segments (a run). Other datagrams are
// sent alone. Each arrives unchanged, with one system call per batch.
func TestMmsgRuns(t *testing.T) {
	l := newLab(t)
	l.config.Batch = 256
	r := l.listen(t, "ring")
	s, err := openMmsg(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Runs of 64 and 36 datagrams, a run that ends with a shorter datagram, and single datagrams.
	payload := func(i int) []byte {
		b := make([]byte, 30)
		switch {
		case i == 100:
			b = b[:20]
		case i > 200:
			b = make([]byte, 30+i)
		}
		return append(b, byte(i))
	}
	i := 0
	n, err := s.Send(256, func(slot []byte) int {
		i++
		return copy(slot, payload(i-1))
	})
	if c := s.Counters(); err != nil || n != 256 || c.Handed != 256 || c.Kicks != 1 {
		t.Errorf("%d, %v, %+v", n, err, c)
	}
	got := collect(t, r, 256)
	if len(got) != 256 {
		t.Fatalf("%d arrived", len(got))
	}
	for i, p := range got {
		if want := string(payload(i)); p != want {
			t.Fatalf("datagram %d has %d bytes and is %.50q, want %d and %.50q", i, len(p), p, len(want), want)
		}
	}
}

// If the kernel cannot segment a run, its datagrams are sent alone; later ones are sent alone at once.
func TestMmsgContinuesWithoutRuns(t *testing.T) {
	l := newLab(t)
	netns.IP(t, "link", "set", l.near, "mtu", "600")
	s, err := openMmsg(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := l.Received(t, l.far)
	const count, fragments = 30, 2
	for range 2 {
		if n, err := s.Send(count, func([]byte) int { return 1000 }); err != nil || n != count {
			t.Fatal(n, err)
		}
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Error(err)
	}
	// The first batch takes one call that fails, and one call for each datagram. The second batch takes one call.
	if c := s.Counters(); c.Handed != 2*count || c.Left != 2*count || c.Refused != 0 || c.Kicks > count+3 {
		t.Errorf("%+v", c)
	}
	if got := l.Received(t, l.far) - before; got != 2*count*fragments {
		t.Errorf("%d fragments arrived, want %d", got, 2*count*fragments)
	}
}
