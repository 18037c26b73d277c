//go:build !race

// Package race reports whether the race detector is enabled. If it is, sync.Pool drops entries on
// purpose, and tests leave out slow repetitions.
package race

// Enabled reports whether this build has the race detector.
const Enabled = false
