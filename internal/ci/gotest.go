package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Tests are run with -json, for one reason: a test that was skipped looks like
// one that passed. Here a skip is a failure unless skips.txt says where, and
// why, it may be.

// tally counts tests over all steps, fuzz targets included. Only the goroutine
// of the steps touches it.
var tally counts

type counts struct{ passed, failed, skipped int }

// String is the closing line that tools know to read.
func (c *counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// goTest is a step that runs tests with the given packages and flags. A package that
// fails is run once more, by itself: see docs/decisions/0012-a-failure-is-asked-again.md.
func goTest(args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		allowed, err := readSkips(bytes.NewReader(skipsText))
		if err != nil {
			return err
		}
		s := &summary{w: os.Stdout, here: conditions(args), allowed: allowed}
		err = s.run(ctx, args)
		if again := s.again(); err != nil && len(again) > 0 && context.Cause(ctx) == nil {
			fmt.Printf("\nonce more, alone: %s\n", strings.Join(again, ", "))
			s.forget()
			err = s.run(ctx, append(flags(args), append([]string{"-p=1", "-count=1"}, again...)...))
		}
		tally.passed += s.passed
		tally.failed += s.failed
		tally.skipped += s.skipped
		return err
	}
}

// dpdkLibrary is what libdpdk-dev brings.
const dpdkLibrary = "/usr/lib/x86_64-linux-gnu/pkgconfig/libdpdk.pc"

// dpdk runs the tests of a build with that tag, where DPDK is there to build with.
func dpdk(ctx context.Context) error {
	if !present(dpdkLibrary) {
		fmt.Println("NOT RUN: libdpdk-dev is not installed")
		return nil
	}
	return goTest("-tags=dpdk", "-run=DPDK", "./gen/method")(ctx)
}

// flags are those of args that are no pattern of packages.
func flags(args []string) (out []string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// run runs go test, and adds what it says.
func (s *summary) run(ctx context.Context, args []string) error {
	cmd := program(ctx, "go", append([]string{"test", "-json", "-timeout=20m"}, args...)...)
	if os.Getenv("CI") != "" {
		cmd.Args = append(cmd.Args, "-count=1")
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // for -race
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

// event is what "go test -json" prints, one a line (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string // empty: the event is about the package
	Elapsed float64
	Output  string
}

// summary reads events, shows what matters, and judges skips.
type summary struct {
	w       io.Writer
	here    map[string]bool // conditions that hold for this run
	allowed []skip

	counts
	forbidden []string            // skips that nothing allows
	broken    []string            // packages that failed
	certain   bool                // a failure that running again would only hide
	output    map[string][]string // "package test" -> lines so far
}

// read consumes events until the end. Lines that are none are shown as they are.
func (s *summary) read(r io.Reader) error {
	s.output = map[string][]string{}
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

func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		s.certain = true
		fmt.Fprint(s.w, e.Output)
	case "output":
		s.output[key] = append(s.output[key], e.Output)
		s.certain = s.certain || strings.Contains(e.Output, "DATA RACE")
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, key)
	}
}

func (s *summary) endTest(e event) {
	lines := s.output[e.Package+" "+e.Test]
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		fmt.Fprint(s.w, strings.Join(lines, ""))
	case "skip":
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
		fmt.Fprint(s.w, strings.Join(s.output[e.Package+" "], ""))
		s.broken = append(s.broken, e.Package)
	}
}

// maxAgain is how many packages may have failed by chance.
const maxAgain = 3

// again names the packages that may be asked again: few, and none with a data race,
// a build that fails or a skip without leave.
func (s *summary) again() []string {
	if s.certain || len(s.forbidden) > 0 || len(s.broken) > maxAgain {
		return nil
	}
	return slices.Clone(s.broken)
}

// forget drops the failures, since the packages they are of run again.
func (s *summary) forget() { s.failed, s.broken = 0, nil }

// verdict is the error of the whole run, nil if nothing is wrong.
func (s *summary) verdict() error {
	for _, f := range s.forbidden {
		fmt.Fprintln(s.w, "skipped, and internal/ci/skips.txt does not allow it:", f)
	}
	switch {
	case len(s.broken) > 0:
		return fmt.Errorf("%s failed", strings.Join(s.broken, ", "))
	case len(s.forbidden) > 0:
		return fmt.Errorf("%d tests were skipped without leave", len(s.forbidden))
	case s.passed == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

// skipReason is what a test said when it skipped, out of its output.
func skipReason(lines []string) string {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
