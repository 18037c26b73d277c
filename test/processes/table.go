//go:build linux

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key identifies a cell of the table: row, kernel and number of CPUs.
type key struct {
	row    string
	cpus   int
	kernel string
}

// table holds all results, in nanoseconds per operation.
type table struct {
	rows    []string // names of the rows, in the order of their first results
	cpus    []int
	results map[key][]float64
}

func newTable() *table { return &table{results: map[key][]float64{}} }

func (t *table) add(row string, cpus int, kernel string, ns float64) {
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	if !slices.Contains(t.cpus, cpus) {
		t.cpus = append(t.cpus, cpus)
	}
	k := key{row, cpus, kernel}
	t.results[k] = append(t.results[k], ns)
}

// median returns the median, or 0 without results.
func (t *table) median(k key) float64 {
	all := slices.Sorted(slices.Values(t.results[k]))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// Texts of the pages. Each explains the columns of the table that follows it.
const (
	countTitle = "# Instructions of Linux programs on Loam and on Linux"
	countIntro = "This page was made by `go run ./test/processes -count` on %s." + ` Loam and Linux run the same program files in
virtual machines of QEMU, which emulates and counts every instruction, with the same memory and one CPU. Linux is Debian's
cloud kernel without mitigations.

- **operation**: each row counts the instructions of one operation. All instructions that the virtual machine executes are
  counted, also the instructions of the program and its libraries. In the rows for redis and nginx, the instructions of the
  client are counted too, because the client runs in the same virtual machine.
- **Linux** and **Loam**: these columns have the numbers of instructions for one operation, rounded to three digits.
- **Linux / Loam** is the number for Linux divided by the number for Loam: above 1, Loam needs fewer instructions.
`
	timeTitle = "# Times of Linux programs on Loam and on Linux"
	timeIntro = "This page was made by `go run ./test/processes -reps %d` on %s," + ` on a machine with %d CPUs. Loam and Linux run the same
program files in virtual machines of QEMU, which emulates every instruction (TCG), with the same memory and CPUs. Linux is
Debian's cloud kernel without mitigations.

- **operation**: each row has the time of one operation.
- **Linux** and **Loam**: these columns have the time of one operation in microseconds, as the median of all runs.
- **Linux / Loam** is the time on Linux divided by the time on Loam: above 1, Loam is faster.
`
)

// String returns the table as Markdown.
func (t *table) String() string {
	var b strings.Builder
	date := time.Now().Format("2 January 2006")
	show, unit := micros, "µs"
	if *many {
		b.WriteString(countTitle + "\n\n")
		fmt.Fprintf(&b, countIntro, date)
		show, unit = instructions, "instructions"
	} else {
		b.WriteString(timeTitle + "\n\n")
		fmt.Fprintf(&b, timeIntro, *reps, date, runtime.NumCPU())
	}
	b.WriteString("\n| operation |")
	for _, n := range t.cpus {
		fmt.Fprintf(&b, " %s on Linux, %s | %s on Loam, %s | Linux / Loam |", unit, count(strconv.Itoa(n), "CPU"), unit, count(strconv.Itoa(n), "CPU"))
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|---:|---:|", len(t.cpus)) + "\n")
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, n := range t.cpus {
			linux, loam := t.median(key{row, n, onLinux}), t.median(key{row, n, onLoam})
			ratio := "-"
			if linux > 0 && loam > 0 {
				ratio = fmt.Sprintf("%.2f", linux/loam)
			}
			fmt.Fprintf(&b, " %s | %s | %s |", show(linux), show(loam), ratio)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// micros shows nanoseconds as microseconds.
func micros(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", ns/1000)
}

// instructions shows a number with three significant digits and separated thousands. With -count, a nanosecond is an
// instruction.
func instructions(n float64) string {
	if n == 0 {
		return "-"
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-2)
	text := strconv.Itoa(int(math.Round(n/unit) * unit))
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
