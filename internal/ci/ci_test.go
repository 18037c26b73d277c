package main

import (
	"bufio"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// events is an example of the output of "go test -json".
const events = `
{"Action":"output","Package":"p","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestPrivileged","Output":"=== RUN   TestPrivileged\n"}
{"Action":"output","Package":"p","Test":"TestPrivileged","Output":"    p_test.go:9: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestPrivileged","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0.2}
{"Action":"skip","Package":"q","Elapsed":0}
`

const failure = `
{"Action":"output","Package":"p","Test":"TestBad","Output":"    p_test.go:3: 2 != 3\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":0.2}
`

func TestFailuresAreRetried(t *testing.T) {
	race := `{"Action":"output","Package":"p","Test":"TestBad","Output":"WARNING: DATA RACE\\n"}`
	build := `{"Action":"build-output","ImportPath":"p","Output":"p.go:1: no\\n"}`
	skip := `{"Action":"skip","Package":"p","Test":"TestIdle","Elapsed":0}`
	var many strings.Builder
	for _, p := range []string{"a", "b", "c", "d"} {
		many.WriteString(strings.ReplaceAll(failure, `"p"`, `"`+p+`"`))
	}
	for _, test := range []struct {
		name, events string
		again        int // number of packages that are run again
	}{
		{"a failure", failure, 1},
		{"a data race", race + failure, 0},
		{"no build", build + failure, 0},
		{"a skip without leave", skip + failure, 0},
		{"many failures", many.String(), 0},
	} {
		s := summary{w: io.Discard}
		if err := s.read(strings.NewReader(strings.ReplaceAll(test.events, "}{", "}\n{"))); err != nil {
			t.Fatal(err)
		}
		if got := s.again(); len(got) != test.again {
			t.Errorf("%s: %d packages run again, want %d", test.name, len(got), test.again)
		}
	}
}

// The second run of a long package has only the tests that failed. All tests of other packages run again, and all tests of a
// package whose test program ended early.
func TestFailedTestsRunAgain(t *testing.T) {
	const sub = `{"Action":"fail","Package":"p","Test":"TestBad/sub","Elapsed":0.1}
{"Action":"fail","Package":"p","Test":"TestWorse","Elapsed":0.1}`
	for _, test := range []struct {
		name, pkg, events string
		benchmarks        bool
		want              string
	}{
		{"two tests", longest[0], sub + failure, false, "-run=^(TestWorse|TestBad)$ " + longest[0]},
		{"a short package", "p", sub + failure, false, "p"},
		{"a panic", longest[0], strings.Replace(failure, `"FAIL\n"`, `"panic: x\n"`, 1), false, longest[0]},
		{"a failure in TestMain", longest[0], `{"Action":"fail","Package":"p"}`, false, longest[0]},
		{"a benchmark", longest[0], failure, true, longest[0]},
	} {
		s := summary{w: io.Discard, noTests: test.benchmarks}
		if err := s.read(strings.NewReader(strings.ReplaceAll(test.events, `"p"`, `"`+test.pkg+`"`))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.rerun(test.pkg), " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func summarize(t *testing.T, events string, here map[string]bool, skips string) (shown string, verdict error) {
	t.Helper()
	allowed, err := readSkips(strings.NewReader(skips))
	if err != nil {
		t.Fatal(err)
	}
	var w strings.Builder
	s := summary{w: &w, here: here, allowed: allowed}
	if err := s.read(strings.NewReader(strings.TrimSpace(events))); err != nil {
		t.Fatal(err)
	}
	verdict = s.verdict()
	return w.String() + s.counts.String(), verdict
}

func TestSkipNeedsLeave(t *testing.T) {
	const leave = "user  p  TestPriv*  makes a network namespace"
	for _, test := range []struct {
		name, skips string
		root        bool
		fails       bool
	}{
		{"nothing allows it", "", false, true},
		{"allowed, and the condition holds", leave, false, false},
		{"allowed, but not for root", leave, true, true},
		{"allowed in another package", strings.Replace(leave, " p ", " q ", 1), false, true},
	} {
		shown, verdict := summarize(t, events, map[string]bool{always: true, user: !test.root}, test.skips)
		if (verdict != nil) != test.fails {
			t.Errorf("%s: verdict %v", test.name, verdict)
		}
		if shows := strings.Contains(shown, "p.TestPrivileged: p_test.go:9: needs root"); shows != test.fails {
			t.Errorf("%s: shows\n%s", test.name, shown)
		}
		if !strings.HasSuffix(shown, "1 passed, 0 failed, 1 skipped") {
			t.Errorf("%s: counts in\n%s", test.name, shown)
		}
	}
}

func TestFailureShowsItsOutput(t *testing.T) {
	shown, verdict := summarize(t, failure, nil, "")
	if verdict == nil || verdict.Error() != "p failed" {
		t.Errorf("verdict %v", verdict)
	}
	if !strings.Contains(shown, "p_test.go:3: 2 != 3") {
		t.Errorf("shows\n%s", shown)
	}
}

// A test that is killed has no result of its own.
func TestUnfinishedTestShowsItsOutput(t *testing.T) {
	const killed = `{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out after 20m0s\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t1200s\n"}
{"Action":"fail","Package":"p","Elapsed":1200}`
	shown, _ := summarize(t, killed, nil, "")
	for _, want := range []string{"panic: test timed out", "FAIL\tp\t1200s"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
}

func TestNoTestIsNoSuccess(t *testing.T) {
	if _, verdict := summarize(t, `{"Action":"skip","Package":"q"}`, nil, ""); verdict == nil {
		t.Error("a run without a test passed")
	}
}

func TestBenchmarkFails(t *testing.T) {
	const good = `{"Action":"output","Package":"p","Test":"BenchmarkA","Output":"BenchmarkA 1 5 ns/op\n"}
{"Action":"skip","Package":"p","Test":"BenchmarkB"}
{"Action":"pass","Package":"p","Elapsed":0.2}
`
	for _, test := range []struct {
		events string
		fails  bool
	}{{good, false}, {strings.ReplaceAll(failure, "TestBad", "BenchmarkBad"), true}} {
		s := summary{w: io.Discard, noTests: true}
		if err := s.read(strings.NewReader(strings.TrimSpace(test.events))); err != nil {
			t.Fatal(err)
		}
		if err := s.verdict(); (err != nil) != test.fails {
			t.Errorf("%s: verdict %v", test.events, err)
		}
	}
}

func TestSkipsFile(t *testing.T) {
	if _, err := readSkips(strings.NewReader(string(skipsText))); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"always p TestX\n":           "skips.txt:1: want a condition, a package, a test and a reason",
		"# x\nsometimes p TestX y\n": `skips.txt:2: no condition "sometimes"`,
	} {
		if _, err := readSkips(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// writePackage creates a package from the text of its files.
func writePackage(t *testing.T, path string, files map[string]string) goPackage {
	t.Helper()
	p := goPackage{ImportPath: path, Dir: t.TempDir()}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte("package p\n"+files[name]), 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			p.TestGoFiles = append(p.TestGoFiles, name)
		} else {
			p.GoFiles = append(p.GoFiles, name)
		}
	}
	return p
}

func TestFuzzTargets(t *testing.T) {
	all := []goPackage{
		writePackage(t, "loam/wire", map[string]string{
			"a.go": "func FuzzNot() {}", "a_test.go": "func FuzzA(f *testing.F) {}\nfunc (x) FuzzNot() {}\nfunc TestFuzz() {}", "b_test.go": "func FuzzB(f *testing.F) {}",
		}),
		writePackage(t, "loam/link", map[string]string{"a_test.go": ""}),
	}
	got, err := fuzzTargets(all, "/programs", "/corpora")
	want := []fuzzTarget{
		{"loam/wire", all[0].Dir, "FuzzA", "/programs/0", "/corpora/loam/wire"}, {"loam/wire", all[0].Dir, "FuzzB", "/programs/0", "/corpora/loam/wire"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// Only packages in which nothing starts a goroutine are left out of the step race.
func TestRaced(t *testing.T) {
	all := []goPackage{
		writePackage(t, "pure", map[string]string{"a.go": "var Start int", "a_test.go": "func TestA(t *testing.T) { _ = x.Start }"}),
		writePackage(t, "concurrent", map[string]string{"a.go": "func f() { go f() }"}),
		writePackage(t, "over", map[string]string{"a.go": "import _ \"concurrent\"", "a_test.go": ""}),
		writePackage(t, "tests", map[string]string{"a.go": "", "a_test.go": "func TestA(t *testing.T) { t.Parallel() }"}),
		writePackage(t, "unsafe", map[string]string{"a.go": "import \"unsafe\"", "a_test.go": ""}),
		writePackage(t, "command", map[string]string{"a.go": "", "a_test.go": "func TestA(t *testing.T) { cmd.Start() }"}),
		writePackage(t, "helper", map[string]string{"a.go": "", "a_test.go": "import _ \"over\""}),
	}
	all[2].Imports, all[6].TestImports = []string{"concurrent", "fmt"}, []string{"over"}
	want := []string{"over", "tests", "unsafe", "command", "helper"}
	if got, tested, err := raced(all); err != nil || tested != 6 || !slices.Equal(got, want) {
		t.Errorf("got %q of %d, %v, want %q", got, tested, err, want)
	}
}

// TestLongestPackages checks that the packages that begin first exist, and that the order is correct.
func TestLongestPackages(t *testing.T) {
	for _, p := range longest {
		if _, err := os.Stat(filepath.Join("../..", strings.TrimPrefix(p, "loam/"))); err != nil {
			t.Error(err)
		}
	}
	last := longest[len(longest)-1]
	if got := longestFirst([]string{"loam/a", last, "loam/b"}); !slices.Equal(got, []string{last, "loam/a", last, "loam/b"}) {
		t.Errorf("got %q", got)
	}
}

// The end of a step names the tests that took longest, and not their subtests.
func TestSlowTestsAreShown(t *testing.T) {
	const events = `{"Action":"pass","Package":"p","Test":"TestLong","Elapsed":20}
{"Action":"pass","Package":"p","Test":"TestLonger/sub","Elapsed":30}
{"Action":"pass","Package":"p","Test":"TestLonger","Elapsed":30}
{"Action":"pass","Package":"p","Test":"TestShort","Elapsed":9}`
	var w strings.Builder
	s := summary{w: &w}
	if err := s.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	s.showSlow()
	got := strings.Fields(w.String())
	if want := []string{"slow", "p", "30.0s", "TestLonger", "slow", "p", "20.0s", "TestLong"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestFuzzTimeIsBounded(t *testing.T) {
	for n, want := range map[int]time.Duration{0: fuzzMost, 1: fuzzMost, 100: 2400 * time.Millisecond, 1000: fuzzLeast} {
		if got := fuzzTime(n); got != want {
			t.Errorf("%d targets: %v each, want %v", n, got, want)
		}
	}
}

func TestLateIsNotFound(t *testing.T) {
	const late = "--- FAIL: FuzzA (4.03s)\n    context deadline exceeded\nFAIL\n"
	const found = "--- FAIL: FuzzA (1.0s)\n    --- FAIL: FuzzA (0.00s)\n    Failing input written to testdata/fuzz/FuzzA/1\n"
	for out, want := range map[string]bool{late: true, found: false, late + found: false, "panic: x\n": false} {
		if onlyLate([]byte(out)) != want {
			t.Errorf("%q: only late is %v", out, !want)
		}
	}
}

// TestVulnerabilityDatabase checks that a missing database is the only error of govulncheck that is
// ignored.
func TestVulnerabilityDatabase(t *testing.T) {
	const offline = "govulncheck: fetching vulnerabilities: Get \"https://vuln.go.dev/x\": no such host\n"
	for _, test := range []struct {
		out, exit string
		want      bool
	}{
		{offline, "1", true},
		{offline, "3", false},
		{"govulncheck: loading packages: x\n", "1", false},
		{"Vulnerability #1: GO-2026-1\n", "3", false},
	} {
		err := exec.Command("sh", "-c", "exit "+test.exit).Run()
		if got := unreachable([]byte(test.out), err); got != test.want {
			t.Errorf("exit %s with %q: unreachable is %v", test.exit, test.out, got)
		}
	}
}

// TestEndTakesChildrenAlong checks that a step that exceeds its time leaves no process running that
// holds its output open.
func TestEndTakesChildrenAlong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := program(ctx, "sh", "-c", "sleep 1000 & echo started; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); line != "started\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	cancel()
	if rest, err := io.ReadAll(r); len(rest) != 0 || err != nil {
		t.Errorf("got %q, %v, want the end of the output", rest, err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("ended well, want killed")
	}
}

func TestUnknownStep(t *testing.T) {
	if err := chosen([]string{"vet", "vett"}); err == nil || !strings.HasPrefix(err.Error(), `no step "vett"`) {
		t.Errorf("got %v", err)
	}
}
