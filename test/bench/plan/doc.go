// Package plan defines what is measured and in what order, and keeps the results.
//
// rows.go is the table: a Test is one kind of measurement (a cell: see package cell), and a Row is a line of results
// made from its samples. run.go runs every test on every subject, several times, interleaved, so that a time in which
// the machine is slow affects all subjects alike. result.go computes medians and ratios.
package plan
