package unikernel

import (
	"strings"
	"testing"
)

// The profile has the format of go tool preprofile, and contains only calls made by Loam's packages.
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

// The profile in a guest uses the import paths of Loam's packages there.
func TestProfileNames(t *testing.T) {
	text := string(profileInGuest())
	if !strings.Contains(text, "\nloamguest/stack.") || strings.Contains(text, "loam/") {
		t.Error("the names are not those in a guest")
	}
	if got, want := profileFlags("/a b")[0], "-gcflags=loamguest/...='-pgoprofile=/a b/loam.pgo'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
