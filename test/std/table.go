package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// counts are the verdicts of the tests of one package, subtests not counted.
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

// table is the counts of both sides, in Markdown.
func table(loam, linux results) string {
	packages := map[string]bool{}
	for t := range loam {
		if t.Name != "" {
			packages[t.Package] = true
		}
	}
	var b strings.Builder
	b.WriteString("| package | Loam: passed | failed | skipped | Linux: passed | failed | skipped |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p, countTests(loam, p), countTests(linux, p))
	}
	return b.String()
}

// document is docs/std.md.
func document(loam, linux results, differing []difference, reasons []*reason) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Go's own tests on Loam\n\nMade by `go run ./test/std`, with %s; subtests are not counted. ", runtime.Version())
	b.WriteString("Both sides ran\non one machine, in one run, without cgo. Tests that the machine does not allow on\neither side (no Internet, for one) are skipped on both.\n\n")
	b.WriteString(table(loam, linux))
	b.WriteString("\n## What differs, and why\n\n| package | test | Loam | Linux | why |\n|---|---|---|---|---|\n")
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
			why += " (some of its subtests)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.Package, name, d.loam.or("did not run"), d.linux.or("did not run"), why)
	}
	return b.String()
}
