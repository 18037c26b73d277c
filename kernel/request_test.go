package kernel

import "testing"

// A request that arrives while another one is being served is served again, because the first service may have come
// too early for it.
func TestRequestWhileServed(t *testing.T) {
	var r request
	served := 0
	r.serve(func() { served++ })
	if served != 0 || r.open() {
		t.Errorf("served %d times, and nobody asked", served)
	}
	r.ask()
	r.ask()
	r.serve(func() {
		if !r.open() {
			t.Error("who waits went on while it was served")
		}
		if served++; served == 1 {
			r.ask()
		}
	})
	if served != 2 || r.open() {
		t.Errorf("served %d times, want 2; still open: %v", served, r.open())
	}
}
