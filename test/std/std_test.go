package main

import (
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

// sides are what is printed on Loam, and the same with nothing failing on Linux.
func sides(t *testing.T) (loam, linux results) {
	t.Helper()
	var both []results
	for _, text := range []string{printed, strings.ReplaceAll(printed, `"fail"`, `"pass"`)} {
		r, _, err := readResults(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, r)
	}
	return both[0], both[1]
}

// Subtests are told by their test, and a package by its tests.
func TestCompare(t *testing.T) {
	got := compare(sides(t))
	if len(got) != 1 || got[0].String() != "p TestFails: fail on Loam, pass on Linux" {
		t.Errorf("differing: %v", got)
	}
	loam, linux := results{{"p", ""}: "fail", {"p", "T"}: "pass"}, results{{"p", ""}: "pass", {"p", "T"}: "pass"}
	if got := compare(loam, linux); len(got) != 1 || got[0].Name != "" {
		t.Errorf("a package that fails without a test: %v", got)
	}
}

// What a test and its subtests have printed is told from the rest.
func TestPrinted(t *testing.T) {
	const text = `{"Action":"output","Package":"p","Test":"TestA/sub","Output":"one\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"two\n"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
`
	_, printed, err := readResults(strings.NewReader(text))
	if got := tail(printed[test{"p", "TestA"}]); got != "\tone\n\ttwo" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := tail(strings.Repeat("line\n", 100)); strings.Count(got, "line") != 20 {
		t.Errorf("the tail of 100 lines: %q", got)
	}
}

// A difference needs a reason, and a reason a difference.
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
		"always p TestFails a\nalways q TestX b":    "", // was not run
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

// Tests that would end the others are left out by name.
func TestLeftOut(t *testing.T) {
	reasons, err := readReasons("stops p TestA why\nmay p TestB why\nstops q TestC why\nvm:stops q TestD why", "process")
	if got := leftOut(reasons); got != "^(TestA|TestC)$" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := leftOut(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// A report says what was run, and by which command.
func TestHead(t *testing.T) {
	for _, p := range platforms {
		for _, short := range []bool{false, true} {
			o := options{short: short}
			got := o.head(p)
			if strings.Contains(got, "-short") != short || strings.Contains(got, "-platform vm") != (p.name == "vm") {
				t.Errorf("%s, short %v: %s", p.name, short, got)
			}
		}
	}
	if _, err := findPlatform("moon"); err == nil {
		t.Error("a platform that is not there")
	}
}

func TestTable(t *testing.T) {
	loam, linux := sides(t)
	if got := table(loam, linux); !strings.Contains(got, "| p | 1 | 1 | 0 | 2 | 0 | 0 |\n") {
		t.Errorf("%s", got)
	}
	reasons, _ := readReasons("always p TestFails because", "process")
	got := document(loam, linux, compare(loam, linux), reasons)
	if !strings.Contains(got, "| p | TestFails | fail | pass | because |\n") {
		t.Errorf("%s", got)
	}
	if strings.Contains(got, "fails on both") {
		t.Errorf("nothing fails on both sides: %s", got)
	}
	if got := document(loam, loam, nil, nil); !strings.Contains(got, "on both sides\n\n- p TestFails\n") {
		t.Errorf("everything fails on both sides: %s", got)
	}
}
