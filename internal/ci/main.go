// Command ci is what "make test" runs: everything that has to pass before a
// change lands, in one table of steps. It goes through all of them, even after
// one has failed, and ends with what each took and how it went.
//
//	go run ./internal/ci             all steps
//	go run ./internal/ci vet fuzz    only these, in the order of the table
//
// It uses the standard library only, so that it runs before anything else has
// been fetched. gotest.go runs tests and judges skips, fuzz.go finds and runs
// fuzz targets, packages.go installs what Debian has to give.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// A run on two cores that do nothing else takes half an hour and should stay below
// expected; a busy machine may take up to limit, behind which who asked has gone.
const (
	expected = 40 * time.Minute
	limit    = 80 * time.Minute
)

// step is one thing that has to pass. What it prints while running is for
// whoever looks for the reason of a failure; success should be a line or two.
type step struct {
	name string
	what string
	run  func(context.Context) error
}

// steps stand in the order in which failures are cheapest to find.
var steps = []step{
	{"packages", "install what the tests need, as root on Debian", installPackages},
	{"rules", "format, layers, sizes, documents", command("go", "test", "./internal/house")},
	{"vet", "go vet", command("go", "vet", "./...")},
	{"staticcheck", "staticcheck", command("go", "tool", "staticcheck", "./...")},
	{"vulnerable", "govulncheck: known holes in what we link", vulnerabilities},
	{"test", "every test", goTest(everything)},
	{"race", "every test under the race detector", goTest(everything, "-race")},
	{"dpdk", "the method over DPDK, which other builds leave out", dpdk},
	{"std", "Go's own tests of the network, on Loam and on Linux", command("go", "run", "./test/std", "-short", "net", "net/http", "net/netip", "net/url", "syscall")},
	{"fuzz", "every fuzz target for a few seconds", fuzzAll},
	{"benchmarks", "every benchmark once", command("go", "test", "-run=^$", "-bench=.", "-benchtime=1x", everything)},
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

// chosen narrows steps down to the named ones; no name means all.
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

// runAll runs the steps and prints the closing table, and reports whether all
// of them passed.
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
