//go:build !race

package unikernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs of testdata/isolation try to harm a machine with two CPUs. The machine and a server in it continue, and
// all pages that the programs used are free afterwards. The variable LOAM_ISOLATION sets the time for the fuzzer (1h).
// Without the variable, the fuzzer runs for seconds, and the hostile programs do less work.

// isolationVariable is the environment variable with the time for the fuzzer. A time of a minute and more makes the hostile
// programs do all of their work.
const isolationVariable = "LOAM_ISOLATION"

// isolationMemory is the memory of the machine, in MiB.
const isolationMemory = 700

// isolated runs one of the programs in a machine.
func isolated(t *testing.T, args ...string) {
	t.Helper()
	isolatedWith(t, nil, args...)
}

// isolatedWith runs one of the programs in a machine whose command has additional environment variables.
func isolatedWith(t *testing.T, env []string, args ...string) {
	t.Helper()
	source, err := filepath.Abs("testdata/isolation")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "isolate")
	files, err := filepath.Glob(filepath.Join(source, "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", append([]string{"-static", "-O1", "-w", "-pthread", "-o", program}, files...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd = linuxCommand(program, args...)
	cmd.Env = append(append(cmd.Env, machineCPUs+"=2", fmt.Sprintf("%s=%d", onMachine, isolationMemory)), env...)
	out, err := cmd.CombinedOutput()
	text := string(out)
	t.Log(text)
	if err != nil || !strings.HasSuffix(text, "isolated\n") || strings.Contains(text, "FAILED") {
		t.Errorf("%q: %v", args, err)
	}
}

// fuzzTime returns the time for the fuzzer.
func fuzzTime(t *testing.T) time.Duration {
	text := os.Getenv(isolationVariable)
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v: set it to a time such as 1h", isolationVariable, err)
	}
	return d
}

// A fuzzer makes random system calls.
func TestLinuxIsolationFuzz(t *testing.T) {
	d := fuzzTime(t)
	seed := uint64(time.Now().UnixNano()) % 1e9
	isolated(t, "fuzz", fmt.Sprint(seed), fmt.Sprint(d.Seconds()))
}

// The test runs hostile programs, one for each kind of harm.
func TestLinuxIsolationHostile(t *testing.T) {
	if fuzzTime(t) < time.Minute {
		isolated(t, "hostile", "quick")
		return
	}
	isolated(t, "hostile")
}

// A process whose only memory is page tables does not stop the others.
func TestLinuxIsolationPageTables(t *testing.T) {
	const want = "killed: 1\nthe other process has its memory: 1\n"
	cmd := linuxCommand(compiled(t, t.TempDir(), "pagetables"))
	cmd.Env = append(cmd.Env, machineCPUs+"=2", onMachine+"=192")
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// Processes that make the kernel use its whole heap end neither the machine nor another process, and their memory is free afterwards.
func TestLinuxIsolationHeap(t *testing.T) {
	want := ""
	for _, kind := range []string{"sockets", "chains", "both", "names"} {
		want += kind + ": 2 of 2 others run, 0 wrong replies, half of the memory: 0\n"
	}
	cmd := linuxCommand(compiled(t, t.TempDir(), "greedy"))
	cmd.Env = append(cmd.Env, machineCPUs+"=2", onMachine+"=128")
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}
