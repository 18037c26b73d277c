package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Every fuzz target of the tree runs for a short time. The targets are listed in every run, so a new target cannot be
// left out by mistake. "go test" already runs the seeds of each target; this step searches a little further.
const (
	fuzzTotal = 4 * time.Minute // time for all targets together, not counting their compilation
	fuzzMost  = 4 * time.Second // maximum time for one target
	fuzzLeast = 1 * time.Second
)

// fuzzTarget identifies one fuzz function.
type fuzzTarget struct{ pkg, name string }

// fuzzAll is the step that runs all fuzz targets. It runs all of them, also after a failure.
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

// fuzzTargets parses the output of "go test -list": the names in a package, and then a line with "ok",
// a tab and the package.
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

// fuzzTime returns the time for each of n targets.
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

// onlyLate reports whether the run failed only because of a bug in the go command
// (golang.org/issue/75804): if the time ends while a worker is busy, the command may fail without a
// finding. A real finding always comes with an input that it writes to a file.
func onlyLate(out []byte) bool {
	return bytes.Contains(out, []byte("    context deadline exceeded\n")) &&
		!bytes.Contains(out, []byte("Failing input written"))
}
