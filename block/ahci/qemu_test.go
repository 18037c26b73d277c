package ahci_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"loam/block"
	"loam/block/ahci"
	"loam/block/blocktest"
	"loam/driver/pci"
	"loam/driver/qtest"
)

// start starts a QEMU with an AHCI controller, whose disk is the file at path. It returns the machine and the
// controller's PCI function.
func start(t *testing.T, path string) (*qtest.Machine, *pci.Function) {
	t.Helper()
	return qtest.StartPCI(t, "ich9-ahci", "id=h", "-drive", "if=none,id=d,format=raw,discard=unmap,file="+path, "-device", "ide-hd,drive=d,bus=h.2")
}

// Data that is written to QEMU's disk is in its file, and reads return the data of the file.
func TestQEMU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m, f := start(t, path)
	disks, refused, err := ahci.Open(m, f, name)
	if err != nil || len(disks) != 1 || len(refused) != 0 {
		t.Fatalf("%d disks, refused %v, %v", len(disks), refused, err)
	}
	t.Logf("%+v", disks[0].Info())
	blocktest.CheckFile(t, disks[0], path, content)
	if err := disks[0].Close(); err != nil || m.Held() != 0 {
		t.Errorf("Close: %v, %d bytes are kept", err, m.Held())
	}
}

func TestQEMUConformance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m, f := start(t, path)
	blocktest.Run(t, func(t testing.TB) block.Device {
		disks, _, err := ahci.Open(m, f, name) // opened again for each test of the suite
		if err != nil || len(disks) != 1 {
			t.Fatalf("%d disks, %v", len(disks), err)
		}
		return disks[0]
	}, blocktest.Allocates)
}
