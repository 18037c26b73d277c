package main

import (
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
	if c.tests != 5 || c.passed != 1 || c.equal != 1 || len(c.differing) != 3 || c.ours() != 3 {
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
	if err := judge([]comparison{c}); err == nil || !strings.Contains(err.Error(), "1 tests differ without a reason") {
		t.Error(err)
	}
	c.differing = c.differing[:2]
	if err := judge([]comparison{c}); err == nil || !strings.Contains(err.Error(), "more than 1 %") {
		t.Error(err)
	}
	c.differing = c.differing[:1]
	if err := judge([]comparison{c}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"| go | os | 5 | 1 | 1 | 1 | 0 |", "| `b c` | fail | pass | other: the host |"} {
		if !strings.Contains(document([]comparison{c}), want) {
			t.Errorf("no %q in\n%s", want, document([]comparison{c}))
		}
	}
}
