package kernel

import "testing"

// If a request arrives while another one is being served, the CPU serves once more, because it may already have
// done the part that the later request needs.
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
