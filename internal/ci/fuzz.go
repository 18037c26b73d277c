package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Every fuzz target of the tree runs for a short while, found anew each time:
// nobody can forget to add one. The seeds of each target are run by "go test"
// already; this looks a little further.
const (
	fuzzTotal = 4 * time.Minute // for all targets together, their building aside
	fuzzMost  = 4 * time.Second // for one target
	fuzzLeast = 1 * time.Second
)

// fuzzTarget is one fuzz function.
type fuzzTarget struct{ pkg, name string }

func fuzzAll(ctx context.Context) error {
	out, err := output(ctx, "", "go", "test", "-list=^Fuzz", everything)
	if err != nil {
		os.Stdout.Write(out)
		return err
	}
	targets := fuzzTargets(string(out))
	each := fuzzTime(len(targets))
	fmt.Printf("%d targets, %v each\n", len(targets), each)
	var bad []string
	for _, t := range targets {
		out, err := t.run(ctx, each)
		if err == nil {
			tally.passed++
			continue
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		os.Stdout.Write(out)
		tally.failed++
		bad = append(bad, t.pkg+"."+t.name)
	}
	if len(bad) > 0 {
		return fmt.Errorf("%s failed; the input lies in testdata/fuzz of the package: keep it as a test", strings.Join(bad, ", "))
	}
	return nil
}

// fuzzTargets reads what "go test -list" prints: the names of a package, then
// its line, "ok", a tab, the package.
func fuzzTargets(list string) (all []fuzzTarget) {
	var names []string
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1 && strings.HasPrefix(f[0], "Fuzz"):
			names = append(names, f[0])
		case len(f) >= 2 && f[0] == "ok":
			for _, name := range names {
				all = append(all, fuzzTarget{f[1], name})
			}
			names = nil
		}
	}
	return all
}

// fuzzTime is the share of each of n targets.
func fuzzTime(n int) time.Duration {
	share := fuzzTotal / time.Duration(max(n, 1))
	return min(max(share, fuzzLeast), fuzzMost).Truncate(100 * time.Millisecond)
}

func (t fuzzTarget) run(ctx context.Context, d time.Duration) ([]byte, error) {
	out, err := output(ctx, "", "go", "test", "-run=^$", "-fuzz=^"+t.name+"$",
		"-fuzztime="+d.String(), "-fuzzminimizetime=200x", t.pkg)
	if err != nil && onlyLate(out) {
		err = nil
	}
	return out, err
}

// onlyLate recognises a mistake of the go command (golang.org/issue/75804):
// when the time is over while a worker is busy, it may fail with nothing found.
// Whatever is really found comes with an input that it writes down.
func onlyLate(out []byte) bool {
	return bytes.Contains(out, []byte("    context deadline exceeded\n")) &&
		!bytes.Contains(out, []byte("Failing input written"))
}
