//go:build !race

package usernet

// raceEnabled has tests that move much data move less.
const raceEnabled = false
