package thread

import "testing"

// An interrupt arrives, or the poller is broken off, while the runtime defers a wake. In every order of their steps, at least one of the two makes the wake.
func TestDebtMeetsInterrupt(t *testing.T) {
	const steps = 5
	for order := range 1 << steps { // bit i: step i is one of the kernel
		var debt Debt
		rung, made, deferred := false, 0, false
		runtime := []func(){
			func() { deferred = debt.Defer() },
			func() { deferred = deferred && !rung },
			func() {
				if !deferred {
					made++
				}
			},
		}
		kernel := []func(){
			func() { rung = true },
			func() {
				if debt.Pay() {
					made++
				}
			},
		}
		for i := range steps {
			next := &runtime
			if order>>i&1 != 0 {
				next = &kernel
			}
			if len(*next) > 0 {
				(*next)[0]()
				*next = (*next)[1:]
			}
		}
		if len(runtime)+len(kernel) == 0 && made == 0 {
			t.Errorf("order %05b: no wake, the debt is %d", order, debt)
		}
	}
}

// The changes of a debt, from each value.
func TestDebtValues(t *testing.T) {
	for _, c := range []struct {
		before               Debt
		defers, pays, lapses bool
		deferred, paid       Debt
	}{
		{Settled, true, false, false, Unpaid, Settled},
		{Unpaid, false, true, true, Unpaid, Settled},
		{Late, false, false, false, Late, Late},
	} {
		d := c.before
		if got := d.Defer(); got != c.defers || d != c.deferred {
			t.Errorf("from %d: Defer returns %v, then %d", c.before, got, d)
		}
		d = c.before
		if got := d.Pay(); got != c.pays || d != c.paid {
			t.Errorf("from %d: Pay returns %v, then %d", c.before, got, d)
		}
		d = c.before
		if got := d.Expire(); got != c.lapses || d != Late {
			t.Errorf("from %d: Expire returns %v, then %d", c.before, got, d)
		}
		if d.Settle(); d != Settled {
			t.Errorf("from %d: settled, then %d", c.before, d)
		}
	}
}
