package main

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

//go:embed reasons.txt
var reasonsText string

// outcome is the result of a test: pass, fail, skip, hang (no progress), crash (the process died), or "" (did not run).
type outcome string

func (o outcome) String() string {
	if o == "" {
		return "did not run"
	}
	return string(o)
}

// outcomes has the outcome of each test of a unit, by the name of the test.
type outcomes map[string]outcome

// readOutcomes returns the outcomes that the output of a unit reports, in lines of "@result OUTCOME NAME".
func readOutcomes(text string) outcomes {
	list := outcomes{}
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) == 3 && f[0] == "@result" {
			list[f[2]] = outcome(f[1])
		}
	}
	return list
}

// difference is a test with different outcomes on Loam and on Linux.
type difference struct {
	Test   string  `json:"test"`
	Loam   outcome `json:"loam"`
	Linux  outcome `json:"linux"`
	reason *reason // nil: the difference has no known reason
}

func (d difference) String() string {
	s := fmt.Sprintf("%s: %v on Loam, %v on Linux", d.Test, d.Loam, d.Linux)
	if d.reason != nil {
		s += ": " + d.reason.why
	}
	return s
}

// comparison is the result of a unit, which is a part of a test suite.
type comparison struct {
	Suite     string       `json:"suite"`
	Unit      string       `json:"unit"`
	Commit    string       `json:"commit"` // the commit of Loam that ran the unit
	Tests     int          `json:"tests"`  // tests that ran on at least one side
	Passed    int          `json:"passed"` // tests that passed on both sides
	Equal     int          `json:"equal"`  // tests with another outcome than pass, which is the same on both sides
	Differing []difference `json:"differing"`
}

func (c comparison) String() string {
	var b strings.Builder
	for _, d := range c.Differing {
		fmt.Fprintf(&b, "%s %s %v\n", c.Suite, c.Unit, d)
	}
	return b.String()
}

// compareUnit compares the outputs of a unit that were kept.
func compareUnit(dir string, u unit) (comparison, error) {
	var sides [2]outcomes
	for i, side := range []string{"loam", "linux"} {
		text, err := os.ReadFile(u.file(dir, side))
		if err != nil {
			return comparison{}, err
		}
		sides[i] = readOutcomes(string(text))
	}
	if len(sides[1]) == 0 {
		return comparison{}, fmt.Errorf("%s reports no test", u.file(dir, "linux"))
	}
	return compare(u, sides[0], sides[1]), nil
}

func compare(u unit, onLoam, onLinux outcomes) comparison {
	c := comparison{Suite: u.suite, Unit: u.name(), Differing: []difference{}}
	names := maps.Clone(onLoam)
	maps.Copy(names, onLinux)
	c.Tests = len(names)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := onLoam[name], onLinux[name]
		switch {
		case a != b:
			c.Differing = append(c.Differing, difference{Test: name, Loam: a, Linux: b})
		case a == "pass":
			c.Passed++
		default:
			c.Equal++
		}
	}
	return c
}

// reason explains why tests differ.
type reason struct {
	class       string // "ours": Loam is at fault, or lacks something; "other": the cause is the host, the emulator or the test
	suite, unit string // unit "*" is any
	pattern     string // a pattern of path.Match for the name of the test, in which "/" is like any other character
	why         string
}

// readReasons reads lines of "class suite unit pattern why".
func readReasons(text string) ([]*reason, error) {
	var list []*reason
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if len(f) < 5 || f[0] != "ours" && f[0] != "other" {
			return nil, fmt.Errorf("reasons.txt: %q is no line of: ours|other suite unit pattern why", line)
		}
		list = append(list, &reason{f[0], f[1], f[2], f[3], strings.Join(f[4:], " ")})
	}
	return list, nil
}

// explain finds the reasons of the differences.
func (c *comparison) explain(reasons []*reason) {
	flat := strings.NewReplacer("/", ":", " ", "_")
	for i, d := range c.Differing {
		for _, r := range reasons {
			ok, _ := path.Match(flat.Replace(r.pattern), flat.Replace(d.Test))
			if ok && r.suite == c.Suite && (r.unit == "*" || r.unit == c.Unit) {
				c.Differing[i].reason = r
				break
			}
		}
	}
}

// ours returns the number of differences for which Loam is at fault (class "ours"). It includes differences without a
// reason.
func (c comparison) ours() int {
	n := 0
	for _, d := range c.Differing {
		if d.reason == nil || d.reason.class == "ours" {
			n++
		}
	}
	return n
}

// judge returns an error if a difference has no reason, or if too large a share of all tests fails for reasons of
// class "ours". The share is only judged if all units were run.
func judge(list []comparison, all bool) error {
	tests, ours, without := 0, 0, 0
	for _, c := range list {
		tests += c.Tests
		ours += c.ours()
		for _, d := range c.Differing {
			if d.reason == nil {
				without++
			}
		}
	}
	switch {
	case without > 0:
		return fmt.Errorf("%d tests differ without a reason: add one to test/suites/reasons.txt", without)
	case all && ours*100 > tests:
		return fmt.Errorf("%d of %d tests differ for a reason of ours, more than 1 %%", ours, tests)
	}
	return nil
}
