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

// A machine's random numbers come from its processor or from its entropy device. Without either, the
// machine does not start.
func TestMachineRandom(t *testing.T) {
	const none = "loam: the machine has no random numbers: "
	for _, model := range []string{"q35", "microvm"} {
		device := "-device " + virtio("rng", model)
		for _, c := range []struct{ processor, device, want string }{
			{"max", "", "ok\n"},
			{"max,rdrand=off", device, "ok\n"},
			{"max,rdrand=off", "", none},
		} {
			cmd := machineCommand(NoNetwork, "random")
			cmd.Env = append(cmd.Env, onModel+"="+model)
			cmd.Env = append(cmd.Env, qemuWith(t, "-cpu "+c.processor+" "+c.device)...)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "ok\n") || !strings.HasPrefix(string(out), c.want) {
				t.Errorf("%s with %s %s: %v: %s", model, c.processor, c.device, err, out)
			}
		}
	}
}

// If the processor has a random source, the entropy device is read only after the program has started.
func TestMachineRandomLater(t *testing.T) {
	const asked = "virtio_rng_pushed" // QEMU's trace event for a read of the entropy device
	log := filepath.Join(t.TempDir(), "log")
	cmd := machineCommand(UserNetwork, "random", "wait")
	cmd.Env = append(cmd.Env, qemuWith(t, "-device "+virtio("rng", "q35")+" -trace "+asked+" -D "+log)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for tick := time.Tick(100 * time.Millisecond); ; <-tick { // bounded by the test's time limit
		if text, _ := os.ReadFile(log); strings.Contains(string(text), asked) {
			break
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil || out.String() != "ok\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}

// qemuWith returns variables with which commands run QEMU with additional options. QEMU runs
// as the user of the test, because that user owns the folders of the script and of its output.
func qemuWith(t *testing.T, options string) []string {
	t.Helper()
	path, err := exec.LookPath(qemu)
	if err != nil {
		t.Skip("there is no QEMU: apt-get install qemu-system-x86")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" %s\n", path, options)
	if err := os.WriteFile(filepath.Join(dir, qemu), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH"), withRoot + "=1"}
}
