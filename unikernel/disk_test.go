package unikernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/fs/ext4/disk"
	"loam/fs/ext4/format"
	"loam/fs/imagefile"
)

// An image that cannot be used is rejected before anything is built.
func TestDiskRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	odd, good := write("odd", []byte("x"), 0o600), write("good", make([]byte, 512), 0o600)
	formatted := func(name string, change func([]byte)) string {
		path := filepath.Join(dir, name)
		f, err := imagefile.Create(path, 8<<20, format.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		super := make(disk.Super, disk.SuperSize)
		if _, err := f.ReadAt(super, disk.SuperOffset); err != nil {
			t.Fatal(err)
		}
		change(super)
		super.Seal()
		if _, err := f.WriteAt(super, disk.SuperOffset); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unknown := formatted("unknown", func(b []byte) { disk.Super(b).SetIncompat(disk.Super(b).Incompat() | 0x10000) })
	quota := formatted("quota", func(b []byte) { disk.Super(b).SetROCompat(disk.Super(b).ROCompat() | 0x100) })
	damaged := formatted("damaged", func(b []byte) { b[0x18] = 77 })
	cut := formatted("cut", func([]byte) {})
	if err := os.Truncate(cut, 4<<20); err != nil {
		t.Fatal(err)
	}
	used, again := formatted("used", func([]byte) {}), formatted("again", func([]byte) {})
	f, err := os.Open(used)
	if err == nil {
		err = imagefile.Lock(f, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, platform := range []Platform{Process, Machine} {
		for _, c := range []struct {
			want  string
			disks []Disk
		}{
			{"there is no /nowhere.img: create it (loam disk create", []Disk{{File: "/nowhere.img"}}},
			{"/nowhere/x.img cannot be created", []Disk{{File: "/nowhere/x.img", Path: "/data", Size: 64 << 20}}},
			{"at least 4 MiB", []Disk{{File: dir + "/small", Path: "/data", Size: 1 << 20}}},
			{"is a directory", []Disk{{File: "/tmp"}}},
			{"no image of a disk", []Disk{{File: good}, {File: odd}}},
			{"two disks", []Disk{{File: good}, {File: good}}},
			{"both at /data", []Disk{{File: cut}, {File: again, Path: "/data"}, {File: quota, Path: "/data"}}},
			{"17 disks", make([]Disk, 17)},
			{"has no ext4 file system: make one", []Disk{{File: good, Path: "/data"}}},
			{"unsupported features: encrypt", []Disk{{File: unknown, Path: "/data"}}},
			{"cannot be written: features that are only read: quota: append :ro", []Disk{{File: quota, Path: "/data"}}},
			{"is damaged", []Disk{{File: damaged, Path: "/data"}}},
			{"the device is too small: 8192 blocks", []Disk{{File: cut, Path: "/data"}}},
			{"is in use", []Disk{{File: used, Path: "/data"}}},
		} {
			_, err := Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: platform}, Disks: c.disks})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v: %v, want %q", c.disks, err, c.want)
			}
		}
	}
	if _, err := os.Stat(dir + "/small"); err == nil {
		t.Error("a file that became no image was left behind")
	}
	_, err = Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}, Platform: Machine}, Disks: []Disk{{File: good, Kind: "nvme"}}, Machine: MachineConfig{Model: "microvm"}})
	if err == nil || !strings.Contains(err.Error(), "microvm has no bus") {
		t.Errorf("nvme in microvm: %v", err)
	}
	_, err = Run(t.Context(), Options{Target: Target{Args: []string{"./nothing"}}, Disks: []Disk{{File: good, Kind: "nvme"}}})
	if err == nil || !strings.Contains(err.Error(), "--platform vm") {
		t.Errorf("nvme in a process: %v", err)
	}
}

// The test parses descriptions of disks as a user writes them, and malformed ones.
func TestParseDisk(t *testing.T) {
	for text, want := range map[string]Disk{
		"a.img":                      {Kind: "virtio", File: "a.img"},
		"nvme:a.img":                 {Kind: "nvme", File: "a.img"},
		"/d/a,b.img:/data":           {Kind: "virtio", File: "/d/a,b.img", Path: "/data"},
		"ahci:a:b:/x/../data/:ro":    {Kind: "ahci", File: "a:b", Path: "/data", ReadOnly: true},
		"virtio:nvme:/data:snapshot": {Kind: "virtio", File: "nvme", Path: "/data", Snapshot: true},
		"a:ro":                       {Kind: "virtio", File: "a", ReadOnly: true},
	} {
		if got, err := ParseDisk(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": "names no file", ":/data": "names no file", "a:/": "would be the root", "a:/b:ro:snapshot": "exclude"} {
		if got, err := ParseDisk(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
