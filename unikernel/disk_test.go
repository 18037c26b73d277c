package unikernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
			cmd.Env = append(cmd.Env, withDisks+"="+strings.Join(images[:], ":"), onModel+"="+model)
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
				names[i] = kind + "@" + images[i]
			}
			names[0] = images[0] // virtio
			cmd := machineCommand(NoNetwork, "disk", device)
			cmd.Env = append(cmd.Env, withDisks+"="+strings.Join(names[:], ":"), onModel+"="+model)
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

// A file that is not a disk image is rejected before anything is built.
func TestMachineDiskRefuses(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(odd, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good")
	if err := os.WriteFile(good, make([]byte, 512), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, disks := range map[string][]string{
		"there is no /nowhere.img": {"/nowhere.img"},
		"is a directory":           {"/tmp"},
		"no image of a disk":       {good, odd},
		"two disks":                {good, good},
		"17 disks":                 make([]string, 17),
	} {
		_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}, Machine: MachineConfig{Disks: disks}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", disks, err)
		}
	}
	_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}, Machine: MachineConfig{Model: "microvm", Disks: []string{"nvme:" + good}}})
	if err == nil || !strings.Contains(err.Error(), "microvm has no bus") {
		t.Errorf("nvme in microvm: %v", err)
	}
	_, err = Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}}, Machine: MachineConfig{Disks: []string{odd}}})
	if err == nil || !strings.Contains(err.Error(), "--platform vm") {
		t.Errorf("a process: %v", err)
	}
}
