package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const printed = `{"Action":"start","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestSame"}
{"Action":"fail","Package":"p","Test":"TestFails/sub"}
{"Action":"fail","Package":"p","Test":"TestFails"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
`

// sides returns example results for Loam, and for Linux the same tests without failures.
func sides(t *testing.T) (loam, linux results) {
	t.Helper()
	var both []results
	for _, text := range []string{printed, strings.ReplaceAll(printed, `"fail"`, `"pass"`)} {
		r := results{}
		if err := readResults(strings.NewReader(text), map[string]bool{"p": true}, r, outputs{}); err != nil {
			t.Fatal(err)
		}
		both = append(both, r)
	}
	return both[0], both[1]
}

// A difference in subtests is reported for their test, and a difference of a package is explained by
// its tests.
func TestCompare(t *testing.T) {
	got := compare(sides(t))
	if len(got) != 1 || got[0].String() != "p TestFails: fail on Loam, pass on Linux" {
		t.Errorf("differing: %v", got)
	}
	loam, linux := results{{"p", ""}: "fail", {"p", "T"}: "pass"}, results{{"p", ""}: "pass", {"p", "T"}: "pass"}
	if got := compare(loam, linux); len(got) != 1 || got[0].Name != "" {
		t.Errorf("a package that fails without a test: %v", got)
	}
	loam[test{"p", "TestSkips"}], linux[test{"p", "TestSkips"}] = "skip", "pass"
	if got := compare(loam, linux); len(got) != 2 || got[0].Name != "" || got[1].Name != "TestSkips" {
		t.Errorf("a package that fails, and of which a test is skipped: %v", got)
	}
	loam[test{"p", "TestFails"}], linux[test{"p", "TestFails"}] = "fail", "fail"
	if got := compare(loam, linux); len(got) != 1 || got[0].Name != "TestSkips" {
		t.Errorf("a package that fails by a test that fails on Linux too: %v", got)
	}
}

// The output of a test includes its subtests' output, and no other output.
func TestPrinted(t *testing.T) {
	const text = `{"Action":"output","Package":"p","Test":"TestA/sub","Output":"one\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"two\n"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
`
	printed := outputs{}
	err := readResults(strings.NewReader(text), map[string]bool{"p": true}, results{}, printed)
	if got := tail(printed[test{"p", "TestA"}]); got != "\tone\n\ttwo" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := tail(strings.Repeat("line\n", 100)); strings.Count(got, "line") != 20 {
		t.Errorf("the tail of 100 lines: %q", got)
	}
}

// A difference needs a reason, and a reason needs a difference.
func TestJudge(t *testing.T) {
	loam, linux := sides(t)
	for text, want := range map[string]string{
		"":                                          "p TestFails: fail on Loam, pass on Linux: reasons.txt does not say why",
		"always p TestFails it must":                "",
		"process:may p TestFails here":              "",
		"vm:may p TestFails there":                  "p TestFails: fail on Loam, pass on Linux: reasons.txt does not say why",
		"stops p TestFails it would":                "",
		"always p Test* it must":                    "",
		"may p TestFails it sometimes":              "",
		"always p TestFails a\nalways p TestSame b": "p TestSame ends as on Linux",
		"always p TestFails a\nmay p TestSame b":    "",
		"always p TestFails a\nfull p TestSame b":   "",
		"always p TestFails a\nalways q TestX b":    "", // the test of the second reason was not run
	} {
		reasons, err := readReasons(text, "process")
		if err != nil {
			t.Fatal(err)
		}
		err = judge(loam, compare(loam, linux), reasons, true)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A reason for full runs does not apply with -short.
func TestJudgeFull(t *testing.T) {
	loam, linux := sides(t)
	reasons, err := readReasons("always p TestFails a\nfull p TestSame b", "vm")
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(loam, compare(loam, linux), reasons, false); err == nil {
		t.Error("a reason without a difference is taken")
	}
}

func TestReasonsAreReasons(t *testing.T) {
	if _, err := readReasons(reasonsText, "process"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"always p TestX", "never p TestX why", "vm:never p TestX why"} {
		if _, err := readReasons(text, "process"); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Tests that would end the others of their package are left out by name, and only in this package.
func TestLeftOut(t *testing.T) {
	reasons, err := readReasons("stops p TestA why\nmay p TestB why\nstops p TestC why\nstops q TestD why\nvm:stops p TestE why", "process")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string]string{"p": "^(TestA|TestC)$", "q": "^(TestD)$", "r": ""} {
		if got := leftOut(reasons, pkg); got != want {
			t.Errorf("of %s: %q, want %q", pkg, got, want)
		}
	}
}

// A report names the packages and the command that made it.
func TestHead(t *testing.T) {
	for _, p := range platforms {
		for _, short := range []bool{false, true} {
			o := options{short: short}
			got := o.head(p, 1)
			if strings.Contains(got, " -short`") != short || strings.Contains(got, "-platform vm") != (p.name == "vm") {
				t.Errorf("%s, short %v: %s", p.name, short, got)
			}
		}
	}
	if got := new(options).head(platforms[1], 3); !strings.Contains(got, "in 3 pieces") {
		t.Errorf("made in 3 pieces: %s", got)
	}
	if _, err := findPlatform("moon"); err == nil {
		t.Error("a platform that is not there")
	}
}

func TestTable(t *testing.T) {
	loam, linux := sides(t)
	linux[test{"bare", ""}] = "skip"
	got := table(loam, linux, []string{"p", "bare"})
	for _, want := range []string{"| p | 1 | 1 | 0 | 2 | 0 | 0 |\n", "| bare | none ran | |  | no tests | |  |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	reasons, _ := readReasons("always p TestFails because", "process")
	got = document(loam, linux, compare(loam, linux), reasons)
	if !strings.Contains(got, "| p | TestFails | fail | pass | because |\n") {
		t.Errorf("%s", got)
	}
	if strings.Contains(got, "fail on both") {
		t.Errorf("no test fails on both systems: %s", got)
	}
	if got := document(loam, loam, nil, nil); !strings.Contains(got, "on both systems\n\n- p TestFails\n") {
		t.Errorf("every test fails on both systems: %s", got)
	}
}

// Output is kept, and an interrupted run continues from it.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	command := filepath.Join(dir, "command")
	open := func() *kept {
		t.Helper()
		k, err := openKept(t.Context(), dir, loam, false)
		if err == nil {
			err = os.WriteFile(command, []byte("a build"), 0o644)
		}
		if err == nil {
			err = begin(dir, command)
		}
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	fmt.Fprint(k, printed, `{"Action":"start","Package":"q"}`, "\n", `{"Action":"pa`)
	k.Close()
	// Add an incomplete last line, as if the disk were full.
	os.WriteFile(k.file.Name(), append(must(os.ReadFile(k.file.Name())), `{"Action":"ou`...), 0o644)
	k = open()
	if k.done["p"] != "fail" || k.done["q"] != "" || piecesOf(dir) != 2 {
		t.Errorf("done: %v, in %d pieces", k.done, piecesOf(dir))
	}
	fmt.Fprint(k, strings.ReplaceAll(printed, `"fail"`, `"pass"`))
	k.Close()
	o := options{}
	r, _, err := o.read(dir, loam, []string{"p"})
	if err != nil || r[test{"p", "TestFails"}] != "pass" || len(r) != 4 {
		t.Errorf("the last run of a package does not count: %v, %v", r, err)
	}
	os.WriteFile(command, []byte("another build"), 0o644)
	if err := begin(dir, command); err != nil || piecesOf(dir) != 1 {
		t.Errorf("another build goes on: %v", err)
	}
	if _, err := os.Stat(k.file.Name()); err == nil {
		t.Error("what another build has made is kept")
	}
}

// The output of tests that are being interrupted does not count.
func TestKeptInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	k, err := openKept(ctx, t.TempDir(), linux, true)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	stop()
	fmt.Fprint(k, printed)
	if len(k.done) > 0 {
		t.Errorf("done: %v", k.done)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
