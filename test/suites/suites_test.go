package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestUnits(t *testing.T) {
	units, err := readUnits(unitsText)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, u := range units {
		if name := u.file("", "loam"); files[name] {
			t.Errorf("%s is the output of two units", name)
		} else {
			files[name] = true
		}
	}
	for _, bad := range []string{"cpython", "cpython x test_os", "cpython 0 test_os"} {
		if _, err := readUnits(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if got := choose(units, "go:os/exec"); len(got) != 1 || got[0].name() != "os/exec" {
		t.Errorf("go:os/exec is %v", got)
	}
	if got := choose(units, "go:os,go:net"); len(got) != 2 {
		t.Errorf("go:os,go:net are %v", got)
	}
	if got := choose(units, "none"); got != nil {
		t.Errorf("none is %v", got)
	}
}

func TestReasons(t *testing.T) {
	if _, err := readReasons(reasonsText); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"ours go os TestX", "mine go os TestX because"} {
		if _, err := readReasons(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	onLoam := readOutcomes("noise\n@result pass a\n@result fail b c\n@result skip d\n@result hang e/f\n")
	onLinux := readOutcomes("@result pass a\n@result pass b c\n@result skip d\n@result pass e/f\n@result fail g\n")
	c := compare(unit{"go", []string{"60", "os"}}, onLoam, onLinux)
	if c.Tests != 5 || c.Passed != 1 || c.Equal != 1 || len(c.Differing) != 3 || c.ours() != 3 {
		t.Errorf("%+v", c)
	}
	reasons, err := readReasons("other go os b_* the host\nours go * e/? a fault\nother go net g not this unit\n")
	if err != nil {
		t.Fatal(err)
	}
	c.explain(reasons)
	if c.ours() != 2 {
		t.Errorf("%v", c)
	}
	if err := judge([]comparison{c}, true); err == nil || !strings.Contains(err.Error(), "1 tests differ without a reason") {
		t.Error(err)
	}
	c.Differing = c.Differing[:2]
	if err := judge([]comparison{c}, true); err == nil || !strings.Contains(err.Error(), "more than 1 %") {
		t.Error(err)
	}
	c.Differing = c.Differing[:1]
	if err := judge([]comparison{c}, true); err != nil {
		t.Error(err)
	}
	c.Commit = "abc"
	for _, want := range []string{"| go | os | 5 | 1 | 1 | 1 | 0 | abc |", "| b c | fail | pass | not because of Loam: the host |"} {
		if !strings.Contains(document([]comparison{c}, nil), want) {
			t.Errorf("no %q in\n%s", want, document([]comparison{c}, nil))
		}
	}
}

func TestResults(t *testing.T) {
	units := []unit{{"go", []string{"60", "os"}}, {"go", []string{"60", "net"}}}
	name := filepath.Join(t.TempDir(), "results")
	results, err := readResults(name)
	if err != nil || len(results) != 0 {
		t.Fatal(results, err)
	}
	c := compare(units[1], outcomes{"TestA": "fail"}, outcomes{"TestA": "pass", "TestB": "skip"})
	c.Commit = "abc"
	results[key(units[1])] = c
	if err := writeResults(name, units, results); err != nil {
		t.Fatal(err)
	}
	again, err := readResults(name)
	if err != nil || !reflect.DeepEqual(again, results) {
		t.Errorf("%v %v, want %v", again, err, results)
	}
	list, missing := inOrder(units, again)
	if len(list) != 1 || list[0].Unit != "net" || len(missing) != 1 || missing[0].name() != "os" {
		t.Errorf("%v, missing %v", list, missing)
	}
}

func TestPatient(t *testing.T) {
	u := unit{"go", []string{"60", "os"}}
	if got := u.patient("7.9 1 1"); got[0] != "60" || got[1] != "os" {
		t.Error(got)
	}
	if got := u.patient("8.1 1 1"); got[0] != "120" || u.args[0] != "60" {
		t.Error(got)
	}
}
