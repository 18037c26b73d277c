package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Tests run with -json, to distinguish skipped tests from passed ones. A skip is a failure
// unless skips.txt allows it, with a place and a reason.

// tally counts tests over all steps, fuzz targets included. Only the goroutine that runs the steps
// accesses it.
var tally counts

type counts struct{ passed, failed, skipped int }

// String returns the final line of a run, which other tools parse.
func (c *counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// goTest returns a step that runs tests with the given packages and flags. Tests that fail are run
// once more, alone: see docs/decisions/0012-failed-packages-run-again.md.
func goTest(args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		allowed, err := readSkips(bytes.NewReader(skipsText))
		if err != nil {
			return err
		}
		s := &summary{w: os.Stdout, here: conditions(args), allowed: allowed, noTests: slices.Contains(args, noTests)}
		err = s.run(ctx, args)
		if again := s.again(); err != nil && len(again) > 0 && context.Cause(ctx) == nil {
			err = s.runAgain(ctx, args, again)
		}
		s.showSlow()
		tally.passed += s.passed
		tally.failed += s.failed
		tally.skipped += s.skipped
		return err
	}
}

// vetted is the argument of go test that omits go vet, which is a step of its own.
const vetted = "-vet=off"

// longest are the packages whose tests take longest, in minutes. They begin first: go test runs as many packages at a
// time as there are processors, and a long one at the end would run beside an idle processor.
var longest = []string{"loam/unikernel", "loam/fs/ext4", "loam/test/interop", "loam/cmd/loam", "loam/unikernel/image", "loam/stack/tcp", "loam/stack"}

// longestFirst returns the packages, those of longest first. The pattern everything contains all packages.
func longestFirst(packages []string) []string {
	var first []string
	for _, p := range longest {
		if slices.Contains(packages, p) || slices.Contains(packages, everything) {
			first = append(first, p)
		}
	}
	return append(first, packages...) // go test ignores the second mention of a package
}

// benchmarks is the step that runs each benchmark once.
func benchmarks(ctx context.Context) error {
	all, err := listPackages(ctx)
	if err != nil {
		return err
	}
	var paths []string
	for _, p := range all {
		names, err := p.testsNamed("Benchmark")
		if err != nil {
			return err
		}
		if len(names) > 0 {
			paths = append(paths, p.ImportPath)
		}
	}
	return goTest(append([]string{vetted, noTests, "-bench=.", "-benchtime=1x"}, paths...)...)(ctx)
}

// noTests is the argument of go test that selects no test, for a run of benchmarks.
const noTests = "-run=^$"

// dpdkLibrary is a file that package libdpdk-dev installs.
const dpdkLibrary = "/usr/lib/x86_64-linux-gnu/pkgconfig/libdpdk.pc"

// dpdk runs the tests of the build with tag dpdk, if DPDK is installed.
func dpdk(ctx context.Context) error {
	if !present(dpdkLibrary) {
		fmt.Println("NOT RUN: libdpdk-dev is not installed")
		return nil
	}
	return goTest("-tags=dpdk", "-run=DPDK", "./gen/method")(ctx)
}

// flags returns the elements of args that are flags, not package patterns.
func flags(args []string) (out []string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// run runs go test and adds its results to s. The tests of one package more than there are processors run at a time, because
// those of some packages mostly wait, for example for timers of Linux. A flag -p in args takes precedence.
func (s *summary) run(ctx context.Context, args []string) error {
	cmd := program(ctx, "go", append([]string{"test", "-json", "-timeout=40m", fmt.Sprint("-p=", runtime.NumCPU()+1)}, args...)...)
	if os.Getenv("CI") != "" {
		cmd.Args = append(cmd.Args, "-count=1")
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // -race requires cgo
	cmd.Stderr = os.Stdout
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := s.read(out)
	waitErr := cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return cmp.Or(s.verdict(), waitErr, readErr)
}

// event is one line of the output of "go test -json" (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string // empty: the event is about the package
	Elapsed float64
	Output  string
}

// summary reads events, prints failures and package results, and checks skips.
type summary struct {
	w       io.Writer
	here    map[string]bool // the conditions of skips.txt that hold in this run
	allowed []skip
	noTests bool // the run has benchmarks only; they are not counted

	counts
	forbidden []string // skips that skips.txt does not allow
	broken    []string // packages that failed
	// failedTests has the failed tests of each package, without subtests. ended has the packages whose test program ran all
	// its tests and reported a failure, in contrast to a panic.
	failedTests map[string][]string
	ended       map[string]bool
	// certain means that the failure is certain, so the packages must not run again: a pass of the second run would
	// hide it.
	certain bool
	output  map[string][]string // output lines so far; a key is "PACKAGE TEST"
	slow    []event             // results of tests that took slowTest or longer, without subtests
}

// slowTest is the time in seconds from which on the end of a step names a test; maxSlow is the number of tests that it names.
const (
	slowTest = 10
	maxSlow  = 15
)

// showSlow prints the tests that took longest.
func (s *summary) showSlow() {
	slices.SortStableFunc(s.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range s.slow[:min(len(s.slow), maxSlow)] {
		fmt.Fprintf(s.w, "slow %-32s %6.1fs  %s\n", e.Package, e.Elapsed, e.Test)
	}
}

// read consumes events until the end. It prints lines that are not events unchanged.
func (s *summary) read(r io.Reader) error {
	s.output = map[string][]string{}
	if s.ended == nil {
		s.ended, s.failedTests = map[string]bool{}, map[string][]string{}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(s.w, lines.Text())
			continue
		}
		s.take(e)
	}
	return lines.Err()
}

// take processes one event. A build error or a data race makes the failure certain, so that no package
// is run again.
func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		s.certain = true
		fmt.Fprint(s.w, e.Output)
	case "output":
		s.output[key] = append(s.output[key], e.Output)
		s.certain = s.certain || strings.Contains(e.Output, "DATA RACE")
		if e.Test == "" && e.Output == "FAIL\n" { // package testing prints this line after all tests
			s.ended[e.Package] = true
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, key)
	}
}

// endTest counts a finished test. It prints the output of a failed test, and records a skip that
// skips.txt does not allow.
func (s *summary) endTest(e event) {
	lines := s.output[e.Package+" "+e.Test]
	if e.Elapsed >= slowTest && !strings.Contains(e.Test, "/") {
		s.slow = append(s.slow, e)
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		if !strings.Contains(e.Test, "/") {
			s.failedTests[e.Package] = append(s.failedTests[e.Package], e.Test)
		}
		fmt.Fprint(s.w, strings.Join(lines, ""))
	case "skip":
		if s.noTests {
			return
		}
		s.skipped++
		if !slices.ContainsFunc(s.allowed, func(a skip) bool { return s.here[a.when] && a.matches(e.Package, e.Test) }) {
			s.forbidden = append(s.forbidden, fmt.Sprintf("%s.%s: %s", e.Package, e.Test, skipReason(lines)))
		}
	}
}

func (s *summary) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.w, "ok   %-32s %6.1fs\n", e.Package, e.Elapsed)
	case "fail":
		s.showUnfinished(e.Package)
		s.broken = append(s.broken, e.Package)
	}
}

// showUnfinished prints the output of a package that failed, and of its tests that have not ended: the test that ran when
// the time was up, or when the program crashed.
func (s *summary) showUnfinished(name string) {
	for _, key := range slices.Sorted(maps.Keys(s.output)) {
		if strings.HasPrefix(key, name+" ") {
			fmt.Fprint(s.w, strings.Join(s.output[key], ""))
			delete(s.output, key)
		}
	}
}

// maxAgain is the largest number of failed packages that are run again.
const maxAgain = 3

// again returns the packages that may be run again: none if too many failed, or after a data race, a
// build error or a forbidden skip.
func (s *summary) again() []string {
	if s.certain || len(s.forbidden) > 0 || len(s.broken) > maxAgain {
		return nil
	}
	return slices.Clone(s.broken)
}

// rerun returns the arguments of go test for the second run of a package. In a package of longest, they select the failed
// tests. In other packages, or if the first run ended early, they select all tests.
func (s *summary) rerun(pkg string) []string {
	if names := s.failedTests[pkg]; s.ended[pkg] && len(names) > 0 && !s.noTests && slices.Contains(longest, pkg) {
		return []string{"-run=^(" + strings.Join(names, "|") + ")$", pkg}
	}
	return []string{pkg}
}

// runAgain discards the failures of the first run, and runs these packages again, one after the other.
func (s *summary) runAgain(ctx context.Context, args, packages []string) (err error) {
	second := map[string][]string{}
	for _, p := range packages {
		second[p] = s.rerun(p)
	}
	s.failed, s.broken, s.failedTests, s.ended = 0, nil, nil, nil
	for _, p := range packages {
		fmt.Fprintf(s.w, "\nonce more, alone: %s\n", strings.Join(second[p], " "))
		if e := s.run(ctx, slices.Concat(flags(args), []string{"-p=1", "-count=1"}, second[p])); e != nil {
			err = e
		}
	}
	return err
}

// verdict returns the error of the whole run, or nil.
func (s *summary) verdict() error {
	for _, f := range s.forbidden {
		fmt.Fprintln(s.w, "skipped, and internal/ci/skips.txt does not allow it:", f)
	}
	switch {
	case len(s.broken) > 0:
		return fmt.Errorf("%s failed", strings.Join(s.broken, ", "))
	case len(s.forbidden) > 0:
		return fmt.Errorf("%d tests were skipped without leave", len(s.forbidden))
	case s.passed == 0 && !s.noTests:
		return fmt.Errorf("no test ran")
	}
	return nil
}

// skipReason returns the message of a skipped test, from its output.
func skipReason(lines []string) string {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
