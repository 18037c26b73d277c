//go:build !race

package unikernel

import (
	"path/filepath"
	"slices"
	"testing"
)

// SYSCALL instructions in a program's own code are served like calls, by the kernel or by the layers above it. That
// also holds on stacks that move, beside a loop that never yields, and during garbage collection.
func TestMachineTraps(t *testing.T) {
	for _, cpus := range []string{"1", "2"} {
		cmd := machineCommand(NoNetwork, "assembly")
		cmd.Env = append(cmd.Env, machineCPUs+"="+cpus)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "from assembly\nok\n" {
			t.Errorf("on %s CPUs: %v: %s", cpus, err, out)
		}
	}
}

// Traps returns the functions of the program that contain SYSCALL instructions. No function of the standard library
// or of Loam is among them.
func TestTraps(t *testing.T) {
	for program, want := range map[string][]string{
		"assembly": {"main.call", "main.keeps", "main.send"},
		"profile":  nil,
	} {
		out := filepath.Join(t.TempDir(), program)
		got, err := BuildImage(t.Context(), Target{Args: []string{"./testdata/guest/" + program}}, nil, FormatELF, out)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", program, got, err, want)
		}
	}
	if _, err := Traps([]byte("text")); err == nil {
		t.Error("a file that is not a program has no traps")
	}
}
