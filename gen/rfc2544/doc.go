// Package rfc2544 runs the tests of RFC 2544 against a device that stands between
// two interfaces of this machine: throughput (section 26.1), latency (26.2), frame
// loss rate (26.3) and back-to-back frames (26.4, as RFC 9004 has it).
//
// Read search.go (the searches, which are pure: a trial goes in, the next rate
// comes out), trial.go (one trial: a sender and a sink), run.go (the tests), and
// report.go.
//
// Trials are as long as the user says; the RFC asks for 60 seconds, and for 20
// repetitions of the latency test, and the report says what was done instead.
package rfc2544
