package unikernel

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program reads and writes the image as a block device.
func TestMachineDisk(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk, with a comma.img")
	content := make([]byte, 1<<20)
	copy(content, "...of the host")
	if err := os.WriteFile(image, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"q35", "microvm"} {
		cmd := machineCommand(NoNetwork, "disk")
		cmd.Env = append(cmd.Env, withDisk+"="+image, onModel+"="+model)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "1048576 bytes, \"of the host\"\n" {
			t.Errorf("%s: %v: %s", model, err, out)
		}
		copy(content[700:], "in the middle")
		copy(content[4096:], bytes.Repeat([]byte("block"), 4096))
		if got, err := os.ReadFile(image); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: the image has other bytes, %v", model, err)
		}
	}
}

// What is no image is refused before anything is built.
func TestMachineDiskRefuses(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(odd, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for disk, want := range map[string]string{"/nowhere.img": "there is no /nowhere.img", "/tmp": "is a directory", odd: "no image of a disk"} {
		_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}, Machine: MachineConfig{Disk: disk}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", disk, err)
		}
	}
	_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}}, Machine: MachineConfig{Disk: odd}})
	if err == nil || !strings.Contains(err.Error(), "--platform vm") {
		t.Errorf("a process: %v", err)
	}
}
