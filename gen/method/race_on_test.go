//go:build race

package method

const raceEnabled = true
