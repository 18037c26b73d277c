//go:build race

package unikernel

// raceEnabled has tests leave out what only repeats others: what is built for a
// guest is the same under the race detector.
const raceEnabled = true
