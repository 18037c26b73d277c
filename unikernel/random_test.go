package unikernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Random numbers of a machine are its processor's, or those of its entropy device, or
// nobody gets any.
func TestMachineRandom(t *testing.T) {
	real, err := exec.LookPath(qemu)
	if err != nil {
		t.Skip("there is no QEMU: apt-get install qemu-system-x86")
	}
	const none = "loam: the machine has no random numbers: "
	for _, model := range []string{"q35", "microvm"} {
		for _, c := range []struct{ processor, device, want string }{
			{"max", "virtio-rng", "ok\n"},
			{"max", "virtio-balloon", "ok\n"},
			{"max,rdrand=off", "virtio-rng", "ok\n"},
			{"max,rdrand=off", "virtio-balloon", none},
		} {
			// A QEMU with that processor, and that device in the place of the first.
			dir := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\nfor a; do shift\ncase $a in virtio-rng-*) a=%s${a#virtio-rng};; esac\n"+
				"set -- \"$@\" \"$a\"; done\nexec %s \"$@\" -cpu %s\n", c.device, real, c.processor)
			if err := os.WriteFile(filepath.Join(dir, qemu), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := machineCommand(NoNetwork, "random")
			cmd.Env = append(cmd.Env, onModel+"="+model, "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "ok\n") || !strings.HasPrefix(string(out), c.want) {
				t.Errorf("%s with %s and %s: %v: %s", model, c.processor, c.device, err, out)
			}
		}
	}
}
