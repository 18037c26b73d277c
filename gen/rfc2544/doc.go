// Package rfc2544 runs the tests of RFC 2544 on a device between two interfaces of this machine: throughput
// (section 26.1), latency (26.2), frame loss rate (26.3) and back-to-back frames (26.4, as updated by RFC 9004).
//
// Reading order: search.go (the searches, which are pure: they get the outcome of a trial and return the next rate),
// trial.go (one trial with a sender and a sink), run.go (the tests) and report.go.
//
// The user sets the duration of trials and the number of repetitions. The RFC requires 60 seconds, and 20 repetitions
// of the latency test. The report contains the values that were used.
package rfc2544
