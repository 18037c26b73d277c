package unikernel

import (
	"strings"
	"testing"
)

// The profile is as go tool preprofile writes it, and has calls by Loam's packages only.
func TestGuestProfile(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(string(guestProfile), "\n"), "\n")
	if lines[0] != "GO PREPROFILE V1" || len(lines)%3 != 1 || len(lines) < 300 {
		t.Fatalf("%d lines, which begin with %q", len(lines), lines[0])
	}
	for i := 1; i < len(lines); i += 3 {
		if !strings.HasPrefix(lines[i], "loam/") || strings.Contains(lines[i]+lines[i+1], guestModule) {
			t.Errorf("line %d: %s calls %s", i+1, lines[i], lines[i+1])
		}
	}
}

// It names Loam's packages as they are named where the program is built.
func TestProfileNames(t *testing.T) {
	for _, c := range []struct{ checkout, has, not string }{
		{"", "\nloamguest/stack.", "loam/"},
		{"/src/loam", "\nloam/stack.", "loamguest/"},
	} {
		text := string(profileOf(c.checkout))
		if !strings.Contains(text, c.has) || strings.Contains(text, c.not) {
			t.Errorf("in %q: %q is missing, or %q is there", c.checkout, c.has, c.not)
		}
	}
	if got, want := profileFlags("/a b", "")[0], "-gcflags=loamguest/...='-pgoprofile=/a b/loam.pgo'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := profileFlags("/a", "/src/loam")[0], "-gcflags=loam/...=-pgoprofile=/a/loam.pgo"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
