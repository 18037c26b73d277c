// Command ci implements "make test": it runs everything that must pass before a change is merged, as a
// list of steps. It runs all steps, also after a failure, and ends with the duration and the result of
// each.
//
//	go run ./internal/ci             all steps
//	go run ./internal/ci vet fuzz    only these, in the order of the list
//
// It uses only the standard library, so that it can run before anything is downloaded. gotest.go runs
// tests and checks skips, race.go and source.go find the packages that a step needs, fuzz.go runs fuzz targets, packages.go
// installs Debian packages.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// A run of all steps takes 50 minutes on two otherwise idle processors. If it takes longer than expected, the final line
// says so. On a busy machine it may take up to limit; after that it is stopped.
const (
	expected = 60 * time.Minute
	limit    = 80 * time.Minute
)

// step is one check that must pass. It prints the details of a failure, and a line or two on success.
type step struct {
	name string
	what string
	run  func(context.Context) error
}

// steps are ordered so that cheap checks fail first.
var steps = []step{
	{"packages", "install what the tests need, as root on Debian", installPackages},
	{"rules", "format, layers, sizes, documents", command("go", "test", "./internal/house")},
	{"vet", "go vet, with and without the tag race", vet},
	{"staticcheck", "staticcheck", command("go", "tool", "staticcheck", "./...")},
	{"vulnerable", "govulncheck: known holes in what we link", vulnerabilities},
	{"test", "every test", goTest(append([]string{vetted}, longestFirst([]string{everything})...)...)},
	{"race", "the tests of packages with goroutines under the race detector", raceTests},
	{"dpdk", "the method over DPDK, which other builds leave out", dpdk},
	{"std", "Go's own tests of the network, on Loam and on Linux", command("go", "run", "./test/std", "-short", "net", "net/http", "net/netip", "net/url", "syscall")},
	{"fuzz", "every fuzz target for a few seconds", fuzzAll},
	{"benchmarks", "every benchmark once", benchmarks},
	{"peers", "test/bench, a module of its own, passes and can measure everything", peers},
}

// everything is the pattern for all packages of this module.
const everything = "./..."

func main() {
	if err := chosen(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the whole run took longer than %v", limit))
	defer cancel()
	if !runAll(ctx) {
		os.Exit(1)
	}
}

// chosen restricts steps to the named ones. Without names, all steps stay.
func chosen(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			return fmt.Errorf("no step %q; the steps are listed in internal/ci/main.go", name)
		}
	}
	if len(names) > 0 {
		steps = slices.DeleteFunc(steps, func(s step) bool { return !slices.Contains(names, s.name) })
	}
	return nil
}

// runAll runs the steps, prints the final table, and reports whether all of them passed.
func runAll(ctx context.Context) bool {
	type result struct {
		took time.Duration
		err  error
	}
	results := make([]result, len(steps))
	start := time.Now()
	for i, s := range steps {
		fmt.Printf("\n== %d/%d %s: %s\n", i+1, len(steps), s.name, s.what)
		began := time.Now()
		err := context.Cause(ctx)
		if err == nil {
			err = s.run(ctx)
		}
		results[i] = result{time.Since(began), err}
		if err != nil {
			fmt.Printf("== %s FAILED: %v\n", s.name, err)
		}
	}
	fmt.Println()
	failed := 0
	for i, s := range steps {
		verdict := "ok"
		if err := results[i].err; err != nil {
			verdict = "FAILED: " + err.Error()
			failed++
		}
		fmt.Printf("%-12s %7.1fs  %s\n", s.name, results[i].took.Seconds(), verdict)
	}
	total := time.Since(start)
	fmt.Printf("%-12s %7.1fs\n\n", "total", total.Seconds())
	if total > expected {
		fmt.Printf("longer than the %v that it should take; was the machine busy?\n", expected)
	}
	fmt.Println(&tally)
	return failed == 0 && tally.failed == 0
}
