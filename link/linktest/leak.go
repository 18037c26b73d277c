package linktest

import (
	"runtime"
	"testing"
	"time"
)

func goroutines() int { return runtime.NumGoroutine() }

// patience is how long a goroutine may take to end before it counts as leaked.
const patience = 10 * time.Second

// checkGoroutines fails if there are more goroutines than before.
func checkGoroutines(t *testing.T, before int) {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; {
		if goroutines() <= before {
			return
		}
		runtime.Gosched()
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, goroutines(), stacks[:runtime.Stack(stacks, true)])
}
