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

// Random numbers of a machine are its processor's, or those of its entropy device, or
// nobody gets any.
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
			cmd.Env = append(cmd.Env, onModel+"="+model, qemuWith(t, "-cpu "+c.processor+" "+c.device))
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "ok\n") || !strings.HasPrefix(string(out), c.want) {
				t.Errorf("%s with %s %s: %v: %s", model, c.processor, c.device, err, out)
			}
		}
	}
}

// The device of a machine whose processor has some is asked when the program runs.
func TestMachineRandomLater(t *testing.T) {
	const asked = "virtio_rng_pushed" // as QEMU calls it
	log := filepath.Join(t.TempDir(), "log")
	cmd := machineCommand(UserNetwork, "random", "wait")
	cmd.Env = append(cmd.Env, qemuWith(t, "-device "+virtio("rng", "q35")+" -trace "+asked+" -D "+log))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for tick := time.Tick(100 * time.Millisecond); ; <-tick { // the test's time bounds this
		if text, _ := os.ReadFile(log); strings.Contains(string(text), asked) {
			break
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil || out.String() != "ok\n" {
		t.Errorf("%v: %s", err, out.String())
	}
}

// qemuWith is a variable of the environment by which commands find a QEMU that has more
// options.
func qemuWith(t *testing.T, options string) string {
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
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}
