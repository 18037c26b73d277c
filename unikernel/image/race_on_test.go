//go:build race

package image

// raceEnabled has tests that boot machines boot fewer: nothing in them is raced.
const raceEnabled = true
