package plpmtud

import (
	"net/netip"
	"testing"
	"time"
)

// path is a path that carries packets of at most mtu bytes.
type path struct {
	mtu int
	now time.Duration
}

// run sends probes until the search is complete, and returns their number.
func (p *path) run(t *testing.T, s *Search) (probes int) {
	t.Helper()
	for ; ; probes++ {
		p.now += time.Second
		n := s.Next(p.now)
		if n == 0 {
			return probes
		}
		if n <= s.Size() || probes > 100 {
			t.Fatalf("probe %d of %d bytes, size %d: %+v", probes, n, s.Size(), s)
		}
		s.Sent(n)
		if s.Next(p.now) != 0 {
			t.Fatal("a second probe while the first is in flight") // RFC 4821 section 7.4: at most one probe is outstanding
		}
		if n <= p.mtu {
			s.Delivered(p.now)
		} else {
			s.Lost(p.now)
		}
	}
}

// RFC 4821 section 7.2: search_high is the largest possible size, and search_low a conservative initial value, such as 1024 bytes
// of payload.
func TestInitialValues(t *testing.T) {
	for _, test := range []struct {
		c       Config
		most    int
		headers int
		want    int
	}{
		{Config{}, 1500, 40, 1064},
		{Config{}, 1500, 60, 1280}, // IPv6: no smaller than the minimum MTU
		{Config{}, 1000, 40, 1000},
		{Config{BaseMSS: 512}, 1500, 40, 576},
		{Config{BaseMSS: 512, Floor: 100}, 1500, 40, 552},
		{Config{BaseMSS: 1 << 20}, 1 << 20, 40, 65535},
	} {
		s := New(test.c, test.most, test.headers, test.headers == 60)
		if s.Size() != test.want {
			t.Errorf("%+v: %d bytes", test, s.Size())
		}
	}
}

// The search ends near every MTU, and at the exact MTU if it is a common one.
func TestSizeIsFound(t *testing.T) {
	for mtu := 1064; mtu <= 1500; mtu++ {
		s := New(Config{}, 1500, 40, false)
		p := path{mtu: mtu}
		n := p.run(t, &s)
		if s.Size() > mtu || s.Size() <= mtu-DefaultThreshold {
			t.Errorf("MTU %d: %d bytes", mtu, s.Size())
		}
		if n > 40 {
			t.Errorf("MTU %d: %d probes", mtu, n)
		}
	}
	for _, mtu := range common[:9] {
		s := New(Config{}, 1500, 40, false)
		p := path{mtu: int(mtu)}
		if p.run(t, &s); s.Size() != int(mtu) {
			t.Errorf("MTU %d: %d bytes", mtu, s.Size())
		}
	}
	s := New(Config{}, 9000, 40, false)
	p := path{mtu: 9000}
	if n := p.run(t, &s); n != 1 || s.Size() != 9000 {
		t.Errorf("%d probes on a path without narrow links, %d bytes", n, s.Size())
	}
}

// RFC 8899 section 5.1.2: a limit of several probes of a size is robust against isolated packet loss.
func TestOneLossProvesNothing(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	for range maxProbes - 1 {
		s.Sent(s.Next(0))
		s.Lost(0)
		if n := s.Next(0); n != 1500 {
			t.Fatalf("the next probe has %d bytes", n)
		}
	}
	s.Sent(1500)
	s.Lost(0)
	if n := s.Next(0); n >= 1500 {
		t.Errorf("the next probe has %d bytes", n)
	}
}

// RFC 4821 section 7.6.4: an inconclusive probe changes no state variable, and the same size is tried again.
func TestInconclusiveProbe(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	before := s
	for range 10 {
		s.Sent(s.Next(0))
		s.Inconclusive()
	}
	if s != before {
		t.Errorf("%+v, before %+v", s, before)
	}
}

// RFC 4821 section 7.7: after a full-stop timeout the size falls to search_low, then to its initial value, and is then halved, with
// a lower bound.
func TestFullStop(t *testing.T) {
	s := New(Config{Floor: 300}, 1500, 40, false)
	if !s.BlackHole() {
		t.Error("1500 bytes are not above the base")
	}
	for _, want := range []int{1064, 532, 340, 340} {
		if n := s.Fallback(); n != want {
			t.Errorf("fallback of %d bytes, want %d", n, want)
		}
		if s.FullStop(false); s.Size() != want {
			t.Errorf("%d bytes, want %d", s.Size(), want)
		}
	}
	s = New(Config{}, 1500, 60, true)
	s.BlackHole()
	for range 2 {
		if s.FullStop(false); s.Size() != 1280 {
			t.Errorf("IPv6: %d bytes", s.Size())
		}
	}
	s = New(Config{}, 1000, 40, false)
	if s.BlackHole() {
		t.Error("a link with an MTU below the base size is taken for a black hole")
	}
}

// After a full-stop timeout, one lost probe of the largest size confirms the black hole, and one delivered probe refutes it.
func TestFirstProbeAfterFullStop(t *testing.T) {
	for _, mtu := range []int{1400, 1500} {
		s := New(Config{}, 1500, 40, false)
		s.BlackHole()
		s.FullStop(false)
		s.Sent(s.Next(0))
		if mtu == 1500 {
			s.Delivered(0)
			if s.Size() != 1500 || s.Next(0) != 0 {
				t.Errorf("%+v", s)
			}
			continue
		}
		s.Lost(0)
		if n := s.Next(0); n >= 1500 || n <= 1064 {
			t.Errorf("the next probe has %d bytes", n)
		}
	}
}

// RFC 4821 section 7.3: after an interval, larger sizes are probed again, so that a path that has grown is used.
func TestLargerSizesAreTriedAgain(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	p := path{mtu: 1400}
	p.run(t, &s)
	p.mtu = 1500
	if n := p.run(t, &s); n != 0 {
		t.Errorf("%d probes before the interval has passed", n)
	}
	p.now += DefaultInterval
	if n := p.run(t, &s); n != 1 || s.Size() != 1500 {
		t.Errorf("%d probes, %d bytes", n, s.Size())
	}
	p.now += DefaultInterval
	if n := p.run(t, &s); n != 0 {
		t.Errorf("%d probes beyond the limit of the link", n)
	}
}

// RFC 4821 section 2: reports of routers are still used.
func TestLimit(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	s.Sent(s.Next(0))
	s.Limit(1400)
	s.Lost(0)
	if n := s.Next(0); n != 1400 {
		t.Errorf("the next probe has %d bytes", n)
	}
	s.Limit(600)
	if s.Size() != 600 || s.Next(0) != 0 {
		t.Errorf("%+v", s)
	}
	s.Limit(1500)
	if n := s.Next(0); s.Size() != 600 || n != 1500 {
		t.Errorf("%d bytes, the next probe has %d", s.Size(), n)
	}
}

// A later connection starts with the result of an earlier one, and does not search again before the interval has passed.
func TestResume(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	if _, ok := s.Changed(); ok {
		t.Error("a result without a probe")
	}
	p := path{mtu: 1420}
	p.run(t, &s)
	r, ok := s.Changed()
	if !ok || r.Low != 1420 {
		t.Fatalf("%+v", r)
	}
	later := New(Config{}, 1500, 40, false)
	later.Resume(r)
	if n := p.run(t, &later); n != 0 || later.Size() != 1420 {
		t.Errorf("%d probes, %d bytes", n, later.Size())
	}
	p.now, p.mtu = r.Again, 1500
	p.run(t, &later)
	if r, ok := later.Changed(); !ok || r.Low != 0 {
		t.Errorf("a path that carries the largest size is remembered: %+v", r)
	}
	narrow := New(Config{}, 1300, 40, false)
	if narrow.Resume(r); narrow.Size() != 1300 {
		t.Errorf("%d bytes on a link of 1300", narrow.Size())
	}
}

// If a probe has confirmed a black hole, the result is stored even if the connection ends before the search.
func TestConfirmedBlackHoleIsStored(t *testing.T) {
	s := New(Config{}, 1500, 40, false)
	s.BlackHole()
	s.FullStop(false)
	if s.Passed(false); s.Size() != 1064 {
		t.Errorf("%d bytes", s.Size())
	}
	if r, ok := s.Changed(); ok {
		t.Errorf("%+v without a probe", r)
	}
	s.Sent(s.Next(0))
	s.Lost(0)
	if r, ok := s.Changed(); !ok || r.Low != 1064 || r.High != 1499 {
		t.Errorf("%+v", r)
	}
}

// The suspicion of a black hole is withdrawn if smaller packets were lost too although the path had carried the size, or if nothing
// was lost. The delivery of a smaller packet alone does not withdraw it.
func TestSuspicionIsWithdrawn(t *testing.T) {
	for _, test := range []struct {
		name                    string
		carried, lost, spurious bool
		want                    int
	}{
		{"black hole", false, false, false, 1064},
		{"black hole on a path that has become narrow", true, false, false, 1064},
		{"black hole and a lost packet", false, true, false, 576},
		{"outage", true, true, false, 1500},
		{"delay", false, true, true, 1500},
	} {
		s := New(Config{}, 1500, 40, false)
		s.BlackHole()
		s.TimedOut()
		s.FullStop(test.carried)
		if test.lost {
			s.TimedOut()
			s.FullStop(true)
		}
		s.Passed(false)
		if s.Passed(test.spurious); s.Size() != test.want {
			t.Errorf("%s: %d bytes", test.name, s.Size())
		}
		if r, ok := s.Changed(); ok {
			t.Errorf("%s: %+v is a result without a probe", test.name, r)
		}
	}
	s := New(Config{}, 1500, 40, false)
	s.BlackHole()
	s.FullStop(false)
	s.Passed(false)
	s.TimedOut()
	if s.Passed(true) {
		t.Error("a later timeout that was unnecessary withdraws the suspicion")
	}
}

func TestTable(t *testing.T) {
	var table Table
	host := netip.MustParseAddr("192.0.2.1")
	table.Store(0, host, Result{})
	if table.Len() != 0 {
		t.Error("nothing is stored")
	}
	table.Store(0, host, Result{Low: 1400})
	if r, ok := table.Find(lifetime-1, host); !ok || r.Low != 1400 {
		t.Errorf("%+v", r)
	}
	if _, ok := table.Find(lifetime, host); ok || table.Len() != 0 {
		t.Error("an old result is found")
	}
	table.Store(0, host, Result{Low: 1400})
	other := host
	for range maxResults {
		other = other.Next()
		table.Find(0, host)
		table.Store(0, other, Result{Low: 1300})
	}
	if _, ok := table.Find(0, host); !ok || table.Len() != maxResults {
		t.Errorf("%d hosts, or the one in use was evicted", table.Len())
	}
	table.Store(0, host, Result{})
	if _, ok := table.Find(0, host); ok {
		t.Error("a removed result is found")
	}
}

func FuzzSearch(f *testing.F) {
	f.Add(uint16(1500), uint16(1400), []byte{0, 0, 1, 0, 2, 3, 4, 5})
	f.Add(uint16(9000), uint16(600), []byte{3, 3, 3, 0, 0, 0, 4, 6, 0, 0})
	f.Fuzz(func(t *testing.T, most, mtu uint16, events []byte) {
		s := New(Config{Threshold: int(mtu % 16)}, int(most), 40, most%2 == 0)
		now := time.Duration(0)
		for _, e := range events {
			n := s.Next(now)
			switch e % 7 {
			case 0, 1:
				if n == 0 {
					now += DefaultInterval
					continue
				}
				if n <= s.Size() || n > int(s.most) {
					t.Fatalf("probe of %d bytes: %+v", n, s)
				}
				s.Sent(n)
				if n <= int(mtu) {
					s.Delivered(now)
				} else {
					s.Lost(now)
				}
			case 2:
				s.Inconclusive()
			case 3:
				s.TimedOut()
				s.FullStop(e >= 128)
			case 4:
				s.Limit(int(e) * 40)
			case 5:
				if r, ok := s.Changed(); ok && r.Low != 0 {
					s.Resume(r)
				}
			case 6:
				s.Passed(e >= 128)
				s.Sent(n)
			}
			if s.low > s.high || s.high > s.most || s.low == 0 {
				t.Fatalf("%+v", s)
			}
			if s.probe != 0 && e%7 == 6 {
				s.Lost(now)
			}
		}
	})
}
