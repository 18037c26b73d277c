package nvme_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/nvme"
	"loam/driver/qtest"
)

// Data that is written to QEMU's controller is in its file, and reads return the data of the file. The device also
// passes the test suite of package blocktest.
func TestQEMU(t *testing.T) {
	for name, options := range map[string]string{"messages": "", "one queue": ",max_ioqpairs=1"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "disk")
			content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			m, f := qtest.StartPCI(t, "nvme", "serial=s,drive=d"+options, "-drive", "if=none,id=d,format=raw,discard=unmap,file="+path)
			d, err := nvme.Open(m, f, nvme.Config{Queues: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v, %d queues", d.Info(), d.Queues())
			blocktest.CheckFile(t, d, path, content)
			if err := d.Close(); err != nil || m.Held() != 0 {
				t.Errorf("Close: %v, %d bytes are kept", err, m.Held())
			}
		})
	}
}

func TestQEMUConformance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m, f := qtest.StartPCI(t, "nvme", "serial=s,drive=d", "-drive", "if=none,id=d,format=raw,discard=unmap,file="+path)
	blocktest.Run(t, func(t testing.TB) block.Device {
		d, err := nvme.Open(m, f, nvme.Config{Queues: 2}) // opened again for each test of the suite
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, blocktest.Allocates)
}

// After a controller is unplugged, requests in flight and later requests come back.
func TestQEMUGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	m, f := qtest.StartPCI(t, "nvme", "serial=s,drive=d", "-drive", "if=none,id=d,format=raw,file="+path)
	m.Stop()
	if _, err := nvme.Open(m, f, nvme.Config{}); !errors.Is(err, block.ErrGone) {
		t.Errorf("Open: %v, want ErrGone", err)
	}
}
