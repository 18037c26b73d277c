package debian

import (
	"os"
	"path/filepath"
	"testing"
)

// A program of the same name from another project is not accepted, even if its -V is an error or it
// cannot run at all.
func TestIsFrom(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, test := range []struct {
		script string
		want   bool
	}{
		{"#!/bin/sh\necho arping from iputils 20221126", true},
		{"#!/bin/sh\necho \"arping: option requires an argument -- 'V'\" >&2; exit 1", false},
		{"#!/nowhere/sh\n# iputils", false},
	} {
		if err := os.WriteFile(filepath.Join(dir, "arping"), []byte(test.script), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := IsFrom("arping", "iputils"); got != test.want {
			t.Errorf("%q: %v, want %v", test.script, got, test.want)
		}
	}
}
