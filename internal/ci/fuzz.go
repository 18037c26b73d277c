package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// fuzzTarget is one fuzz function.
type fuzzTarget struct {
	pkg, dir string // import path and folder of the package
	name     string
	program  string // file of the package's test program; the first of its targets builds it
	corpus   string // folder in which the go command keeps inputs of earlier runs
}

// fuzzAll is the step that runs all fuzz targets. It runs all of them, also after a failure.
func fuzzAll(ctx context.Context) error {
	programs, err := os.MkdirTemp("", "loam-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	all, err := listPackages(ctx)
	if err != nil {
		return err
	}
	cache, err := program(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	targets, err := fuzzTargets(all, programs, filepath.Join(strings.TrimSpace(string(cache)), "fuzz"))
	if err != nil {
		return err
	}
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

// fuzzTargets returns the fuzz targets of all packages. Test programs and inputs of earlier runs lie in the folders programs
// and corpora.
func fuzzTargets(all []goPackage, programs, corpora string) (targets []fuzzTarget, err error) {
	for i, p := range all {
		names, err := p.testsNamed("Fuzz")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			targets = append(targets, fuzzTarget{
				p.ImportPath, p.Dir, name, filepath.Join(programs, fmt.Sprint(i)), filepath.Join(corpora, p.ImportPath),
			})
		}
	}
	return targets, nil
}

// fuzzTime returns the time for each of n targets.
func fuzzTime(n int) time.Duration {
	share := fuzzTotal / time.Duration(max(n, 1))
	return min(max(share, fuzzLeast), fuzzMost).Truncate(100 * time.Millisecond)
}

// run builds the test program if an earlier target has not built it, and runs the target as "go test -fuzz" does.
func (t fuzzTarget) run(ctx context.Context, d time.Duration) ([]byte, error) {
	pattern := "^" + t.name + "$"
	if _, err := os.Stat(t.program); err != nil {
		if out, err := output(ctx, "", "go", "test", "-c", vetted, "-fuzz="+pattern, "-o", t.program, t.pkg); err != nil {
			return out, err
		}
	}
	out, err := output(ctx, t.dir, t.program, "-test.paniconexit0", "-test.run=^$", "-test.fuzz="+pattern,
		"-test.fuzztime="+d.String(), "-test.fuzzminimizetime=200x", "-test.fuzzcachedir="+t.corpus)
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
