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

// QEMU's controller has in its file what was written, and gives back what is there. It
// passes the suite.
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
			checkFile(t, d, path, content)
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
		d, err := nvme.Open(m, f, nvme.Config{Queues: 2}) // the same controller again each time
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, blocktest.Allocates)
}

// A controller that is pulled out returns what is in flight, and what comes later.
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

// checkFile reads, writes, zeroes and discards, and compares with the file at path,
// which has content.
func checkFile(t *testing.T, d block.Device, path string, content []byte) {
	t.Helper()
	o := block.NewIO(d)
	got := make([]byte, len(content))
	if n, err := o.ReadAt(got, 0); n != len(got) || err != nil || !bytes.Equal(got, content) {
		t.Fatalf("ReadAt = %d, %v", n, err)
	}
	text := bytes.Repeat([]byte("written "), 25_600)
	copy(content[4096:], text)
	if n, err := o.WriteAt(text, 4096); n != len(text) || err != nil {
		t.Fatalf("WriteAt = %d, %v", n, err)
	}
	clear(content[512<<10 : 640<<10])
	if err := o.WriteZeroes(512<<10, 128<<10, 0); err != nil {
		t.Error(err)
	}
	if err := o.Discard(768<<10, 64<<10); err != nil {
		t.Error(err)
	}
	if err := o.Flush(); err != nil {
		t.Error(err)
	}
	file, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(file[:768<<10], content[:768<<10]) {
		t.Errorf("the file differs, %v", err)
	}
}
