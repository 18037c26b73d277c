//go:build !race

package unikernel

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// On a small machine, the garbage collector keeps memory below the limit, and infinite recursion ends with Go's stack
// overflow error.
func TestMachineMemory(t *testing.T) {
	cmd := machineCommand(NoNetwork, "memory")
	cmd.Env = append(cmd.Env, onMachine+"=128")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok 48\n" {
		t.Errorf("%v: %s", err, out)
	}
	for _, cpus := range []string{"1", "2"} {
		cmd = machineCommand(NoNetwork, "memory", "overflow")
		cmd.Env = append(cmd.Env, onMachine+"=128", machineCPUs+"="+cpus)
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(string(out), "\nfatal error: stack overflow\n") {
			t.Errorf("on %s CPUs: status %d: %s", cpus, status, out)
		}
		if !strings.Contains(string(out), "a quarter of the machine's memory") || strings.Contains(string(out), "created by loam") {
			t.Errorf("the message does not name the memory, or Loam's goroutines are listed: %s", out)
		}
	}
}

// The programs of testdata that test the system calls of Loam also print ok in a virtual machine.
func TestMachinePrograms(t *testing.T) {
	for program, kind := range map[string]NetworkKind{"early": NoNetwork, "bubble": NoNetwork, "goroutines": UserNetwork, "calls": NoNetwork} {
		if out, err := machineCommand(kind, program).CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	if out, err := machineCommand(NoNetwork, "files", "1000").CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("files: %v: %s", err, out)
	}
}

// A program reads and writes disk images as block devices.
func TestMachineDisks(t *testing.T) {
	dir := t.TempDir()
	var images [3]string
	var contents [3][]byte
	for i := range images {
		images[i] = filepath.Join(dir, "disk, with a comma."+string(rune('a'+i)))
		contents[i] = make([]byte, (i+1)<<20)
		copy(contents[i], "...of the host")
		if err := os.WriteFile(images[i], contents[i], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, model := range []string{"q35", "microvm"} {
		for i, image := range images {
			name := "/dev/vd" + string(rune('a'+i))
			cmd := machineCommand(NoNetwork, "disk", name)
			cmd.Env = append(cmd.Env, withDisks+"="+strings.Join(images[:], "\n"), onModel+"="+model)
			want := fmt.Sprintf("%d bytes, \"of the host\"\n", len(contents[i]))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%s of %s: %v: %s", name, model, err, out)
			}
			copy(contents[i][700:], "in the middle")
			copy(contents[i][4096:], bytes.Repeat([]byte("block"), 4096))
			if got, err := os.ReadFile(image); err != nil || !bytes.Equal(got, contents[i]) {
				t.Errorf("%s of %s: the image has other bytes, %v", name, model, err)
			}
		}
	}
}

// The wake of a thread for the poller is deferred, and is made when a timer or an interrupt of a disk needs it.
func TestMachinePoller(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cpus := range []string{"2", "4"} {
		cmd := machineCommand(NoNetwork, "poller", "/dev/vda")
		cmd.Env = append(cmd.Env, machineCPUs+"="+cpus, withDisks+"="+image)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("on %s CPUs: %v: %s", cpus, err, out)
		}
	}
}

// NVMe and AHCI disks are read and written too, on machines with a PCI bus.
func TestMachineDiskKinds(t *testing.T) {
	dir := t.TempDir()
	for _, model := range []string{"q35", "pc"} {
		for kind, device := range map[string]string{"nvme": "/dev/nvme1n1", "ahci": "/dev/sdb"} {
			var names, images [3]string
			for i := range images {
				images[i] = filepath.Join(dir, kind+string(rune('0'+i)))
				content := make([]byte, (i+1)<<20)
				copy(content, "...of the host")
				if err := os.WriteFile(images[i], content, 0o600); err != nil {
					t.Fatal(err)
				}
				names[i] = kind + ":" + images[i]
			}
			names[0] = images[0] // a process can only have virtio disks
			cmd := machineCommand(NoNetwork, "disk", device)
			cmd.Env = append(cmd.Env, withDisks+"="+strings.Join(names[:], "\n"), onModel+"="+model)
			want := fmt.Sprintf("%d bytes, \"of the host\"\n", 3<<20)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
				t.Errorf("%s of %s: %v: %s", device, model, err, out)
			}
			got, err := os.ReadFile(images[2])
			if err != nil || string(got[700:713]) != "in the middle" || !bytes.Equal(got[4096:24576], bytes.Repeat([]byte("block"), 4096)) {
				t.Errorf("%s of %s: the image has other bytes, %v", device, model, err)
			}
		}
	}
}

// A program whose cache is below a folder with a file system of its own in the guest, such as /dev/shm, starts and finds its
// own file.
func TestCacheInMemory(t *testing.T) {
	home, err := os.MkdirTemp("/dev/shm", "loam-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	for name, cmd := range map[string]*exec.Cmd{"process": guestCommand(NoNetwork, "child", "exit", "5"), "machine": machineCommand(NoNetwork, "child", "exit", "5")} {
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+home)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 5 {
			t.Errorf("%s: %v: %s", name, cmd.ProcessState, out)
		}
	}
}
