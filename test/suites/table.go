package main

import (
	"fmt"
	"runtime"
	"strings"
)

// table returns the table of units.
func table(list []comparison) string {
	var b strings.Builder
	b.WriteString("| suite | unit | tests | passed on both | not passed on both | different results | different because of Loam | commit |\n|---|---|--:|--:|--:|--:|--:|---|\n")
	row := func(suite, name string, n ...any) {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %s |\n", append([]any{suite, strings.ReplaceAll(name, "*", `\*`)}, n...)...)
	}
	var tests, passed, equal, differing, ours int
	for _, c := range list {
		row(c.Suite, c.Unit, c.Tests, c.Passed, c.Equal, len(c.Differing), c.ours(), c.Commit)
		tests, passed, equal = tests+c.Tests, passed+c.Passed, equal+c.Equal
		differing, ours = differing+len(c.Differing), ours+c.ours()
	}
	row("all", "", tests, passed, equal, differing, ours, "")
	return b.String()
}

// document returns docs/suites.md. The units in missing were not run.
func document(list []comparison, missing []unit) string {
	var b strings.Builder
	fmt.Fprintf(&b, head, runtime.Version())
	b.WriteString(table(list))
	if missing != nil {
		b.WriteString("\nThese units were not run yet:")
		for i, u := range missing {
			fmt.Fprintf(&b, "%s %s %s", [2]string{"", ","}[min(i, 1)], u.suite, strings.ReplaceAll(u.name(), "*", `\*`))
		}
		b.WriteString(".\n")
	}
	b.WriteString("\n## Tests with different results, and the reasons\n")
	for _, c := range list {
		if len(c.Differing) > 0 {
			fmt.Fprintf(&b, "\n### %s: %s\n\n| test | result on Loam | result on Linux | reason for the difference |\n|---|---|---|---|\n", c.Suite, c.Unit)
			for _, g := range grouped(c.Differing) {
				b.WriteString(g)
			}
		}
	}
	return b.String()
}

// grouped returns a row for each difference. Consecutive differences with the same reason and outcomes share a row.
func grouped(list []difference) []string {
	var rows []string
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[i].reason != nil && list[j].reason == list[i].reason && list[j].Loam == list[i].Loam && list[j].Linux == list[i].Linux {
			j++
		}
		name := list[i].Test
		if j > i+1 {
			name += fmt.Sprintf(" and %d more", j-i-1)
		}
		why := "unknown"
		if r := list[i].reason; r != nil {
			why = map[string]string{"ours": "because of Loam: ", "other": "not because of Loam: "}[r.class] + r.why
		}
		rows = append(rows, fmt.Sprintf("| %s | %v | %v | %s |\n", strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(name), list[i].Loam, list[i].Linux, why))
		i = j
	}
	return rows
}

const head = `# Test suites of other projects, as Linux programs on Loam

` + "`go run ./test/suites`" + ` made this page with %s. The suites are the tests of CPython 3.11, Go, busybox, perl and
glibc, and the programs of stress-ng. They run as Linux programs on Loam, in a virtual machine with two CPUs under TCG, and with
the same binaries in the same root folder (Debian 12) on the Linux of the host. A test that this root folder does not allow fails
or is skipped on Loam and on Linux.

A suite consists of units, which are run separately. The column "not passed on both" counts tests that are skipped or fail on
Loam and on Linux. The result "hang" means that a test made no progress for as long as
` + "`test/suites/testdata/suites.txt`" + ` allows. Tests of Go and stressors of stress-ng run in their short form.
A reason begins with "because of Loam" if Loam has a fault or lacks a feature, and with "not because of Loam" if the host, the
emulator or the test is the cause.
The last column has the commit of Loam that ran the unit. "before COMMIT" means that the unit ran on an unknown commit before
this one.

`
