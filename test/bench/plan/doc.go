// Package plan defines what is measured and in what order, and keeps the results.
//
// rows.go is the table: a Test is one kind of cell, and a Row is a line of results made from its
// samples. run.go runs every test on every subject, several times, interleaved, so that a slow minute
// of the machine affects all of them alike. result.go computes medians and ratios.
package plan
