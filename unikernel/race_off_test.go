//go:build !race

package unikernel

// raceEnabled: see race_on_test.go.
const raceEnabled = false
