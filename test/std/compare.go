package main

import (
	_ "embed"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
)

//go:embed reasons.txt
var reasonsText string

// difference is a test with different verdicts on Loam and on Linux.
type difference struct {
	test
	loam, linux verdict
}

func (d difference) String() string {
	return fmt.Sprintf("%s %s: %s on Loam, %s on Linux", d.Package, d.Name, d.loam.or("did not run"), d.linux.or("did not run"))
}

// failedByTest reports whether a test of a package failed.
func (r results) failedByTest(pkg string) bool {
	for t, v := range r {
		if t.Package == pkg && t.Name != "" && v == "fail" {
			return true
		}
	}
	return false
}

func (v verdict) or(s string) string {
	if v == "" {
		return s
	}
	return string(v)
}

// compare returns the top-level tests and the packages that differ, or have a subtest that differs. A
// package itself is listed only if none of its tests explains its verdict: it may fail after its tests,
// as net/http does if goroutines are left.
func compare(loam, linux results) []difference {
	differing := map[test]bool{}
	for _, side := range []results{loam, linux} {
		for t := range side {
			if t.Name != "" && loam[t] != linux[t] {
				top, _, _ := strings.Cut(t.Name, "/")
				differing[test{t.Package, top}] = true
			}
		}
	}
	for t, v := range loam {
		if t.Name == "" && v != linux[t] && !loam.failedByTest(t.Package) && !linux.failedByTest(t.Package) {
			differing[t] = true
		}
	}
	var list []difference
	for t := range differing {
		list = append(list, difference{t, loam[t], linux[t]})
	}
	slices.SortFunc(list, func(a, b difference) int {
		return strings.Compare(a.Package+" "+a.Name, b.Package+" "+b.Name)
	})
	return list
}

// reason explains why a test differs.
type reason struct {
	when          string // "always"; "full": not with -short; "may": only sometimes; "stops": the test would end the others
	pkg, name     string // name is a pattern of path.Match; "-" is the package itself
	why           string
	differs, seen bool
}

// entries returns the lines of a list, without empty lines and lines that begin with "#".
func entries(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// readReasons reads lines with the fields WHEN PACKAGE TEST WHY. A prefix "PLATFORM:" of
// the field WHEN restricts the line to that platform.
func readReasons(text, platform string) ([]*reason, error) {
	var list []*reason
	for line := range entries(text) {
		f := strings.Fields(line)
		only, when, limited := strings.Cut(f[0], ":")
		if !limited {
			when = f[0]
		}
		if len(f) < 4 || !slices.Contains([]string{"always", "full", "may", "stops"}, when) {
			return nil, fmt.Errorf("reasons.txt: %q is no line of: when package test why", line)
		}
		if limited && only != platform {
			continue
		}
		list = append(list, &reason{when: when, pkg: f[1], name: strings.TrimPrefix(f[2], "-"), why: strings.Join(f[3:], " ")})
	}
	return list, nil
}

// leftOut returns a pattern for go test that matches the tests that would end the other tests of a package, or "" if
// there are none.
func leftOut(reasons []*reason, pkg string) string {
	var names []string
	for _, r := range reasons {
		if r.when == "stops" && r.pkg == pkg {
			names = append(names, r.name)
		}
	}
	if names == nil {
		return ""
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// explain returns the reason for a difference, or nil.
func explain(reasons []*reason, t test) *reason {
	for _, r := range reasons {
		if ok, _ := path.Match(r.name, t.Name); ok && r.pkg == t.Package {
			return r
		}
	}
	return nil
}

// judge returns an error if a difference has no reason, or if a reason has no difference although its test was run
// (for a reason of full runs, if the run was full).
func judge(loam results, differing []difference, reasons []*reason, short bool) error {
	var wrong []string
	for _, d := range differing {
		if r := explain(reasons, d.test); r != nil {
			r.differs = true
		} else {
			wrong = append(wrong, d.String()+": reasons.txt does not say why")
		}
	}
	for t := range loam {
		if r := explain(reasons, t); r != nil {
			r.seen = true
		}
	}
	for _, r := range reasons {
		if r.seen && !r.differs && (r.when == "always" || r.when == "full" && !short) {
			wrong = append(wrong, fmt.Sprintf("%s %s ends as on Linux: take it out of reasons.txt", r.pkg, r.name))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%d wrong\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	return nil
}
