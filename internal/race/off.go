//go:build !race

// Package race tells whether the race detector is on: then sync.Pool loses entries on
// purpose, and tests leave out what would only be repeated, slowly.
package race

// Enabled reports whether this build has the race detector.
const Enabled = false
