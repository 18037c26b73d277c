package timer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// script drives a wheel by hand. The Owner of an entry is its name.
type script struct {
	t     *testing.T
	w     Wheel
	fired []string
}

func (s *script) advance(now time.Duration) {
	s.fired = nil
	s.w.Advance(now, func(e *Entry) { s.fired = append(s.fired, e.Owner.(string)) })
}

func (s *script) want(sentence string, names ...string) {
	s.t.Helper()
	if !slices.Equal(s.fired, names) {
		s.t.Errorf("%s: %v fired, want %v", sentence, s.fired, names)
	}
}

func (s *script) wantLen(n int) {
	s.t.Helper()
	if s.w.Len() != n {
		s.t.Errorf("%d entries are scheduled, want %d", s.w.Len(), n)
	}
}

func TestFiresInOrderAndNeverEarly(t *testing.T) {
	s := script{t: t}
	a, b, c := Entry{Owner: "a"}, Entry{Owner: "b"}, Entry{Owner: "c"}
	s.w.Schedule(&c, 3*time.Hour)
	s.w.Schedule(&a, time.Millisecond)
	s.w.Schedule(&b, 200*time.Millisecond)
	s.wantLen(3)
	s.advance(time.Millisecond - 1)
	s.want("a nanosecond before the first deadline")
	s.advance(time.Millisecond + Tick)
	s.want("a tick after the first deadline", "a")
	s.advance(2 * time.Hour)
	s.want("long after the second deadline", "b")
	s.advance(4 * time.Hour)
	s.want("long after the third", "c")
	s.wantLen(0)
	if s.w.Next() != Never {
		t.Error("an empty wheel waits for something")
	}
}

func TestSeveralDeadlinesPassAtOnce(t *testing.T) {
	s := script{t: t}
	a, b, c := Entry{Owner: "a"}, Entry{Owner: "b"}, Entry{Owner: "c"}
	s.w.Schedule(&c, time.Minute)
	s.w.Schedule(&b, time.Second)
	s.w.Schedule(&a, time.Millisecond)
	s.advance(time.Hour)
	s.want("an hour passed at once", "a", "b", "c")
}

func TestCancel(t *testing.T) {
	s := script{t: t}
	a, b := Entry{Owner: "a"}, Entry{Owner: "b"}
	s.w.Schedule(&a, time.Second)
	s.w.Schedule(&b, time.Second)
	s.w.Cancel(&a)
	s.w.Cancel(&a)
	s.wantLen(1)
	s.w.Schedule(&b, Never)
	s.wantLen(0)
	if a.Scheduled() || b.Scheduled() {
		t.Error("cancelled entries say that they are scheduled")
	}
	s.advance(time.Minute)
	s.want("all is cancelled")
}

func TestPutOffAndBroughtForward(t *testing.T) {
	s := script{t: t}
	a, b := Entry{Owner: "a"}, Entry{Owner: "b"}
	s.w.Schedule(&a, 200*time.Millisecond)
	s.w.Schedule(&b, time.Hour)
	s.w.Schedule(&a, 400*time.Millisecond)
	s.w.Schedule(&b, 300*time.Millisecond)
	s.wantLen(2)
	s.advance(299 * time.Millisecond)
	s.want("the time that one was put off from has passed")
	s.advance(301 * time.Millisecond)
	s.want("the time that the other was brought forward to has passed", "b")
	s.advance(401 * time.Millisecond)
	s.want("the new time has passed", "a")
}

func TestTimeInThePastFiresAtTheNextTick(t *testing.T) {
	s := script{t: t}
	a, b := Entry{Owner: "a"}, Entry{Owner: "b"}
	s.advance(time.Hour)
	s.w.Schedule(&a, time.Second)
	s.w.Schedule(&b, -time.Second)
	if next := s.w.Next(); next <= time.Hour-Tick || next > time.Hour+Tick {
		t.Errorf("next is %v, want a tick from now", next)
	}
	s.advance(s.w.Next())
	s.want("one tick later", "a", "b")
}

func TestTimeRunningBackwardsIsIgnored(t *testing.T) {
	s := script{t: t}
	a := Entry{Owner: "a"}
	s.advance(time.Hour)
	s.w.Schedule(&a, time.Hour+time.Second)
	s.advance(time.Second)
	s.advance(-time.Second)
	s.want("the clock went back")
	s.advance(time.Hour + 2*time.Second)
	s.want("and came again", "a")
}

func TestFarDeadlines(t *testing.T) {
	s := script{t: t}
	a := Entry{Owner: "a"}
	s.w.Schedule(&a, Never-1)
	s.advance(290 * 365 * 24 * time.Hour)
	s.want("almost as long as a Duration can be")
	for i := 0; s.w.Len() > 0; i++ {
		if i > levels || s.w.Next() < 0 {
			t.Fatalf("next is %v after %d turns", s.w.Next(), i)
		}
		s.advance(s.w.Next())
	}
	s.want("the end of time", "a")
}

func TestFireMaySchedule(t *testing.T) {
	var w Wheel
	a, b := Entry{Owner: "a"}, Entry{Owner: "b"}
	w.Schedule(&a, time.Second)
	w.Schedule(&b, time.Second)
	fires := 0
	w.Advance(time.Minute, func(e *Entry) {
		fires++
		w.Schedule(e, time.Second) // a deadline that has passed long ago
		if e == &a {
			w.Cancel(&b) // b is due in the same slot and has not fired yet
		}
	})
	if fires != 1 || b.Scheduled() || !a.Scheduled() {
		t.Errorf("fired %d times, want the first only, and that one scheduled again", fires)
	}
	if next := w.Next(); next <= time.Minute-Tick || next > time.Minute+Tick {
		t.Errorf("what fire scheduled for the past is next at %v, want one tick from now", next)
	}
}

func TestFireMayPutOffItsNeighbour(t *testing.T) {
	s := script{t: t}
	a, b := Entry{Owner: "a"}, Entry{Owner: "b"}
	s.w.Schedule(&a, time.Second)
	s.w.Schedule(&b, time.Second)
	s.w.Advance(2*time.Second, func(e *Entry) {
		if e != &a {
			t.Error("an entry that was put off fires")
		}
		s.w.Schedule(&b, 3*time.Second)
	})
	s.advance(3*time.Second + Tick)
	s.want("the neighbour's new time", "b")
}

// TestAgainstSlowWheel compares random operations with a list of deadlines that is searched linearly.
func TestAgainstSlowWheel(t *testing.T) {
	for seed := range uint64(20) {
		compare(t, rand.New(rand.NewPCG(seed, 0)))
	}
}

func compare(t *testing.T, r *rand.Rand) {
	var w Wheel
	var entry [50]Entry
	due := map[*Entry]uint64{} // deadline of each entry, in ticks
	var now time.Duration
	for range 5000 {
		e := &entry[r.IntN(len(entry))]
		switch r.IntN(5) {
		case 0, 1:
			// Near and far: up to 2^0 to 2^50 ns from now, sometimes in the past.
			when := now + time.Duration(r.Int64N(1<<r.IntN(50)+1)) - time.Duration(r.IntN(1000))
			w.Schedule(e, when)
			due[e] = max(roundUp(when), uint64(now)>>tickBits+1)
		case 2:
			w.Cancel(e)
			delete(due, e)
		default:
			if now += time.Duration(r.Int64N(1 << r.IntN(42))); r.IntN(2) == 0 && w.Len() > 0 {
				now = max(now, w.Next())
			}
			wantFired(t, &w, now, due)
		}
		if w.Len() != len(due) {
			t.Fatalf("%d entries are scheduled, want %d", w.Len(), len(due))
		}
		earliest := uint64(Never)
		for _, tick := range due {
			earliest = min(earliest, tick<<tickBits)
		}
		if next := w.Next(); uint64(next) > earliest || (next == Never) != (len(due) == 0) {
			t.Fatalf("next is %v, after the first deadline %v", next, time.Duration(earliest))
		}
	}
}

func wantFired(t *testing.T, w *Wheel, now time.Duration, due map[*Entry]uint64) {
	t.Helper()
	last := uint64(0)
	fire := func(e *Entry) {
		tick, ok := due[e]
		if !ok || e.Scheduled() {
			t.Fatal("an entry fires that is not scheduled")
		}
		if tick > uint64(now)>>tickBits || tick < last {
			t.Fatalf("tick %d fires at %d behind %d", tick, uint64(now)>>tickBits, last)
		}
		last = tick
		delete(due, e)
	}
	if now%2 == 0 {
		w.Advance(now, fire)
	}
	w.AdvanceSome(now, 1, fire) // in several calls, each of which fires at most one entry
	for w.Next() <= now&^(Tick-1) {
		w.AdvanceSome(now, 1, fire)
	}
	for _, tick := range due {
		if tick <= uint64(now)>>tickBits {
			t.Fatalf("tick %d did not fire at %d", tick, uint64(now)>>tickBits)
		}
	}
}

func TestFewWakeUpsForADistantDeadline(t *testing.T) {
	var w Wheel
	var e Entry
	w.Schedule(&e, 2*time.Hour+12345*time.Microsecond)
	wakes, fired := 0, false
	for !fired {
		w.Advance(w.Next(), func(*Entry) { fired = true })
		wakes++
	}
	if wakes > levels {
		t.Errorf("%d wake-ups, want one a level at most", wakes)
	}
}

func TestNothingAllocates(t *testing.T) {
	var w Wheel
	var entry [100]Entry
	var now time.Duration
	fired := 0
	if n := testing.AllocsPerRun(100, func() {
		for i := range entry {
			w.Schedule(&entry[i], now+time.Duration(i)*time.Millisecond)
			w.Schedule(&entry[i], now+time.Duration(2*i)*time.Millisecond)
		}
		w.Cancel(&entry[7])
		now += 100 * time.Millisecond
		w.Advance(now, func(*Entry) { fired++ })
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// Deadlines of the same time may fire in several calls. No call fires more entries than requested, each entry
// fires once, and no later entry fires before them.
func TestAdvanceSome(t *testing.T) {
	for _, when := range []time.Duration{5 * Tick, 64 * Tick, 4096 * Tick} { // deadlines on three levels of the wheel
		var w Wheel
		entries := make([]Entry, 10)
		for i := range entries {
			w.Schedule(&entries[i], when)
		}
		var later Entry
		w.Schedule(&later, when+Tick)
		now := when + time.Minute
		fired := 0
		for _, want := range []int{4, 8, 10} {
			w.AdvanceSome(now, min(4, want-fired), func(e *Entry) {
				if e == &later {
					t.Errorf("at %v: the later one fired after %d", when, fired)
				}
				fired++
			})
			if fired != want {
				t.Errorf("at %v: %d have fired, want %d", when, fired, want)
			}
			if w.Next() > now {
				t.Errorf("at %v: the next call is at %v, though entries are left", when, w.Next())
			}
		}
		w.AdvanceSome(now, 4, func(e *Entry) { fired++ })
		if fired != 11 || w.Len() != 0 {
			t.Errorf("at %v: %d have fired and %d are left", when, fired, w.Len())
		}
	}
}

// Connections that are opened together share a slot. No call moves all of their entries, entries may be
// scheduled and cancelled between the calls, and the order stays.
func TestAdvanceSomeBoundsMoves(t *testing.T) {
	const count, most = 10_000, 10
	var w Wheel
	entries := make([]Entry, count)
	for i := range entries {
		w.Schedule(&entries[i], time.Minute+time.Duration(i)*Tick)
	}
	now := time.Minute + count*Tick/2
	var between Entry
	calls, fired, last := 0, 0, uint64(0)
	for ; w.Next() <= now; calls++ {
		w.AdvanceSome(now, most, func(e *Entry) {
			if e.tick < last {
				t.Fatalf("tick %d fires behind %d", e.tick, last)
			}
			last = e.tick
			fired++
		})
		w.Schedule(&between, time.Hour)
		w.Cancel(&entries[count-1-calls%(count/2-1)])
	}
	if want := count / 2; fired < want || fired > want+1 {
		t.Errorf("%d have fired, want %d", fired, want)
	}
	if least := count/2/most + count/2/(most*movesPerFire); calls < least {
		t.Errorf("all was done in %d calls, want at least %d", calls, least)
	}
}
