package usernet

import "testing"

func TestCountersHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	var c Counters
	for which := range c.All() {
		name := which.String()
		if name == "" || seen[name] {
			t.Errorf("counter %d is called %q", which, name)
		}
		seen[name] = true
	}
	if got := numCounters.String(); got != "counter(45)" {
		t.Errorf("one too many is called %q", got)
	}
	c[UDPIn], c[TCPAttempts] = 2, 1
	if got, want := c.String(), "tcp.attempts 1\nudp.in 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
