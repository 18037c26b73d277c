package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// counts are the numbers of tests of one package by verdict, without subtests.
type counts map[verdict]int

func countTests(r results, pkg string) counts {
	c := counts{}
	for t, v := range r {
		if t.Package == pkg && t.Name != "" && !strings.Contains(t.Name, "/") {
			c[v]++
		}
	}
	return c
}

func (c counts) String() string {
	return fmt.Sprintf("%d | %d | %d", c["pass"], c["fail"], c["skip"])
}

// cells returns the counts of a package on one side, or the reason why there are none.
func cells(r results, pkg string) string {
	switch c := countTests(r, pkg); {
	case len(c) > 0:
		return c.String()
	case r[test{pkg, ""}] == "skip":
		return "no tests | | "
	default:
		return "none ran | | "
	}
}

// table returns a Markdown table with the counts of both sides for the packages, sorted by path.
func table(loam, linux results, packages []string) string {
	var b strings.Builder
	b.WriteString("| package | tests passed on Loam | tests failed on Loam | tests skipped on Loam | tests passed on Linux | tests failed on Linux | tests skipped on Linux |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range slices.Sorted(slices.Values(packages)) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p, cells(loam, p), cells(linux, p))
	}
	return b.String()
}

// head returns the beginning of a report made in the given number of runs.
func (o *options) head(on platform, pieces int) string {
	how, command := "in full", "go run ./test/std"
	if on.name != platforms[0].name {
		command += " -platform " + on.name
	}
	if o.short {
		how, command = "with -short", command+" -short"
	}
	command += inPieces(pieces)
	return fmt.Sprintf("# Go's own tests on Loam, %s\n\nThis page is made by `%s with %s. It runs the tests of packages of the standard library\n%s, without cgo, on Loam %s and then on Linux, on one machine. Subtests\nare not counted. A test that this machine does not allow, for example\nbecause it has no Internet access, fails or is skipped on both systems.\n\n",
		on.title, command, runtime.Version(), how, on.title)
}

// inPieces returns the end of the command line in a report made in n runs.
func inPieces(n int) string {
	if n > 1 {
		return fmt.Sprintf(" -keep DIR` in %d pieces", n)
	}
	return "`"
}

// document returns a report without its head.
func document(loam, linux results, differing []difference, reasons []*reason) string {
	var b strings.Builder
	b.WriteString("\n## Tests whose results differ\n\n| package | test | result on Loam | result on Linux | reason for the difference |\n|---|---|---|---|---|\n")
	for _, d := range differing {
		why := "not known"
		if r := explain(reasons, d.test); r != nil {
			why = r.why
		}
		name := d.Name
		if name == "" {
			name = "(the package)"
		}
		if d.loam == d.linux {
			why += "; only some subtests differ"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.Package, name, d.loam.or("did not run"), d.linux.or("did not run"), why)
	}
	failing := failBoth(loam, linux)
	if len(failing) == 0 {
		return b.String()
	}
	b.WriteString("\n## Tests that fail on both systems\n\n")
	for _, t := range failing {
		fmt.Fprintf(&b, "- %s %s\n", t.Package, t.Name)
	}
	return b.String()
}

// failBoth returns the top-level tests that fail on both sides.
func failBoth(loam, linux results) []test {
	var list []test
	for t, v := range loam {
		if v == "fail" && linux[t] == "fail" && t.Name != "" && !strings.Contains(t.Name, "/") {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b test) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Name, b.Name))
	})
	return list
}
