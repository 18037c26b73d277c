//go:build linux && !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/differences.md contains the results on this Linux and on this version of Loam.
func TestDifferences(t *testing.T) {
	const root = "../.."
	got, err := differences(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(root, report))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the program says now: run go run ./test/differences:\n%s", report, got)
	}
}

// A difference without a reason and a reason without a difference are errors.
func TestTable(t *testing.T) {
	of := func(a, b string) answers {
		return answers{[]string{"call a", "call b"}, map[string]string{"call a": a, "call b": b}}
	}
	const reasons = "# a comment\nThere is none.\n\tcall b\n"
	text, err := table(of("ok", "ok"), of("ok", "EPERM"), of("ok", "a|b"), reasons)
	if err != nil || !strings.HasSuffix(text, "There is none.\n\n| probe | result on Linux (ok or errno, then the values that were read) | result on Loam as a process, if different | result on Loam in a virtual machine, if different |\n|---|---|---|---|\n| call b | ok | EPERM | a\\|b |\n") {
		t.Errorf("%v: %s", err, text)
	}
	for _, c := range []struct {
		linux, process answers
		want           string
	}{
		{of("ok", "ok"), of("x", "x"), "no reason: | call a |"},
		{of("ok", "ok"), of("ok", "ok"), "no difference: call b"},
	} {
		if _, err := table(c.linux, c.process, c.linux, reasons); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
