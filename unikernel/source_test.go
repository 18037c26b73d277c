package unikernel

import (
	"strings"
	"testing"

	"loam"
)

// The embedded source contains every package that a guest consists of, and no test.
func TestGuestSource(t *testing.T) {
	files, err := guestSource(loam.Source, Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"loam/unikernel/rt/call.go", "loam/posix/call/table.go", "loam/stack/stack.go", "loam/wire/ipv4.go", "loam/kernel/start.go"} {
		if files[want] == nil {
			t.Errorf("%s is missing", want)
		}
	}
	for name := range files {
		if strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is a test", name)
		}
	}
}

func TestProgramName(t *testing.T) {
	for path, want := range map[string]string{
		"example.com/server": "server", "example.com/server/v2": "server", "example.com/server@v1.2.3": "server",
		"example.com/v2/server": "server", "vet": "vet", "v2": "v2",
	} {
		if got := programName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
