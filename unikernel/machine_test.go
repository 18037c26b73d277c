package unikernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loam/boot"
	"loam/unikernel/guest"
)

// machineCommand is like guestCommand, but for a guest in a virtual machine.
func machineCommand(kind NetworkKind, program string, args ...string) *exec.Cmd {
	cmd := guestCommand(kind, program, args...)
	cmd.Env = append(cmd.Env, onMachine+"=256")
	return cmd
}

// The command's exit status is the program's, not QEMU's.
func TestMachineExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"exit", "0"}, 0},
		{[]string{"exit", "255"}, 255},
		{[]string{"kill", "15"}, 128 + 15},
		{[]string{"kill", "9"}, 128 + 9},
	} {
		cmd := machineCommand(NoNetwork, "child", c.args...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.want || len(out) > 0 {
			t.Errorf("%v: status %d, want %d: %s", c.args, got, c.want, out)
		}
	}
}

// kill -9 of the command leaves no QEMU process.
func TestMachineParentDies(t *testing.T) {
	cmd, _ := running(t, Machine)
	var monitors []string
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		monitors = append(monitors, strings.Fields(string(b))...)
	}
	if len(monitors) != 1 {
		t.Fatalf("the command has children %q, not one", monitors)
	}
	cmd.Process.Kill()
	cmd.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for isQEMU(monitors[0]) { // bounded by the test's time limit
		<-tick.C
	}
}

// isQEMU reports whether a process is a running QEMU.
func isQEMU(pid string) bool {
	name, err := os.ReadFile("/proc/" + pid + "/cmdline") // empty for a process that has ended and was not waited for
	return err == nil && strings.HasPrefix(string(name), qemu)
}

// A configuration that no machine can have is rejected before anything is built.
func TestMachineRefuses(t *testing.T) {
	for _, c := range []struct {
		machine MachineConfig
		want    string
	}{
		{MachineConfig{Memory: 1 << 20}, "1048576 bytes"},
		{MachineConfig{Memory: 1 << 50}, strconv.Itoa(1<<50) + " bytes"},
		{MachineConfig{CPUs: 1000}, "1000 CPUs"},
		{MachineConfig{CPUs: -1}, "-1 CPUs"},
		{MachineConfig{Model: "vax"}, `"vax"`},
	} {
		_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}, Machine: c.machine})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.machine, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}})
	if err == nil || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("without QEMU: %v", err)
	}
}

// Package guest can decode the default configuration of a machine (boot.DefaultConfig).
func TestDefaultConfig(t *testing.T) {
	_, rest, ok := strings.Cut(boot.DefaultConfig, "e"+guest.Variable+"=")
	value, after, end := strings.Cut(rest, "\x00")
	c, err := guest.Decode(value)
	if !ok || !end || after != "" || err != nil || !c.Machine || len(c.Links) != 1 || c.Links[0].Kind != guest.Card {
		t.Errorf("%+v, %v", c, err)
	}
}
