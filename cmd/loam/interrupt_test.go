package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// If the first signal does not end a command, a later one does. The command runs in a child process, which gets
// signals until it has ended.
func TestSecondSignal(t *testing.T) {
	if os.Getenv("LOAM_TEST_SIGNALS") != "" {
		ctx, stop := untilInterrupted()
		defer stop()
		endBySecondSignal(ctx)
		fmt.Println("ready")
		time.Sleep(time.Minute)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondSignal$")
	cmd.Env = append(os.Environ(), "LOAM_TEST_SIGNALS=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewReader(out).ReadString('\n')
	for range 200 {
		if cmd.Process.Signal(syscall.SIGINT) != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
		// the process has ended and was not waited for
		if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); len(state) == 0 {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGINT {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
}
