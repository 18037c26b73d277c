package thread

import "testing"

// A profiling timer expires once in each interval, and missed intervals are skipped. A timer without an interval
// expires once. A stopped timer does not expire.
func TestProfileOwn(t *testing.T) {
	p := Profile{Own: true}
	if p.Due(1000, 10) || p.Next(10) != Never {
		t.Error("a timer that rests goes off")
	}
	p.Set(100, 5, 10)
	for _, c := range []struct {
		used int64
		due  bool
		next int64
	}{{104, false, 105}, {105, true, 115}, {114, false, 115}, {147, true, 155}, {155, true, 165}} {
		if got := p.Due(c.used, 0); got != c.due || p.Next(0) != c.next {
			t.Errorf("at %d: goes off %v, and next at %d", c.used, got, p.Next(0))
		}
	}
	p.Set(200, 5, 0)
	if !p.Due(210, 0) || p.Due(220, 0) || p.Next(0) != Never {
		t.Error("a timer without an interval does not go off once")
	}
	p.Set(300, 0, 10)
	if p.Due(1000, 0) {
		t.Error("a timer that was stopped goes off")
	}
}

// A thread without a timer of its own uses the timer of the process while the latter is set.
func TestProfileOfProcess(t *testing.T) {
	var p Profile
	if p.Due(5, 0) || p.Next(0) != Never {
		t.Error("goes off without a timer")
	}
	if p.Due(5, 10) || p.Next(10) != 15 {
		t.Errorf("is noticed, and next goes off at %d", p.Next(10))
	}
	if p.Due(14, 10) || !p.Due(15, 10) || p.Next(10) != 25 {
		t.Errorf("next at %d", p.Next(10))
	}
	if p.Due(30, 0) || p.Next(0) != Never {
		t.Error("goes off after the timer of the process was stopped")
	}
	if p.Due(100, 3); p.Next(3) != 103 {
		t.Errorf("a timer that begins again goes off at %d", p.Next(3))
	}
	if p.Due(101, 1); p.Next(1) != 102 {
		t.Errorf("a timer that was made shorter goes off at %d", p.Next(1))
	}
}
