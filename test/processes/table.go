//go:build linux

package main

import (
	"fmt"
	"runtime"
	"slices"
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

// String returns the table as Markdown.
func (t *table) String() string {
	var b strings.Builder
	date := time.Now().Format("2 January 2006")
	if *many {
		b.WriteString("# Instructions of Linux programs on Loam beside a Linux guest\n\n")
		fmt.Fprintf(&b, "This page was made by `go run ./test/processes -count` on %s. Figures are thousands of instructions for one\n", date)
	} else {
		b.WriteString("# Linux programs on Loam beside a Linux guest\n\n")
		fmt.Fprintf(&b, "This page was made by `go run ./test/processes -reps %d` on %s, on a machine with %d CPUs. Figures are medians of the microseconds for one\n", *reps, date, runtime.NumCPU())
	}
	b.WriteString("operation. Loam and Linux run in virtual machines of QEMU, which emulates every instruction (TCG), with the same memory and\n")
	b.WriteString("CPUs. Linux is Debian's cloud kernel without mitigations. \"Linux / Loam\" is Linux's figure divided by Loam's: above 1, Loam\nneeds less.\n\n| operation |")
	for _, n := range t.cpus {
		fmt.Fprintf(&b, " Linux, %d CPU | Loam | Linux / Loam |", n)
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
			fmt.Fprintf(&b, " %s | %s | %s |", micros(linux), micros(loam), ratio)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func micros(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", ns/1000)
}
