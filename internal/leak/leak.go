// Package leak finds goroutines that a test has left behind.
package leak

import (
	"runtime"
	"testing"
	"time"
)

// patience is the time that a goroutine may take to end before it counts as leaked.
const patience = 10 * time.Second

// Goroutines returns the number of goroutines, for Check.
func Goroutines() int { return runtime.NumGoroutine() }

// Check fails the test if there are more goroutines than the number passed as before. It
// waits for goroutines that are about to end.
func Check(t testing.TB, before int) {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; {
		if Goroutines() <= before {
			return
		}
		runtime.Gosched()
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, Goroutines(), stacks[:runtime.Stack(stacks, true)])
}
