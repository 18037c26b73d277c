package unikernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loam/internal/race"
)

// If the loam command is killed with SIGKILL at any moment, no process and no file is left: during the build, during
// QEMU's start, and while the program runs.
func TestKilledAnyTime(t *testing.T) {
	t.Parallel() // it mostly waits
	rounds := 12
	if race.Enabled {
		rounds = 2
	}
	const longest = 1500 * time.Millisecond // the program usually runs by then
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	// this run makes the builds that later runs reuse, so that they do not count in the time until a kill
	if out, err := machineCommand(UserNetwork, "early").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for round := range rounds {
		dir := t.TempDir()
		mark := fmt.Sprintf("LOAM_TEST_KILLED=%d-%d", seed, round)
		cmd := machineCommand(UserNetwork, "signals")
		cmd.Env = append(cmd.Env, mark, "TMPDIR="+dir, "XDG_RUNTIME_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(longest))))
		cmd.Process.Kill()
		cmd.Wait()
		tick := time.NewTicker(10 * time.Millisecond)
		for processesWith(mark) > 0 { // bounded by the test's time limit
			<-tick.C
		}
		tick.Stop()
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// processesWith returns the number of processes with a variable in their environment.
func processesWith(variable string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	n := 0
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(append([]byte{0}, b...), []byte("\x00"+variable+"\x00")) {
			n++
		}
	}
	return n
}
