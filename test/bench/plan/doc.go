// Package plan says what is measured and in what order, and keeps the results.
//
// rows.go is the table: one Test is one kind of cell, one Row a line that its
// samples become. run.go runs every test on every subject, several times,
// interleaved, so that a slow minute of the machine falls on all of them alike.
// result.go makes medians and ratios of that.
package plan
