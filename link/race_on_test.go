//go:build race

package link_test

const raceEnabled = true // the pools of package sync drop buffers at random
