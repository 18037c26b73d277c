package rng_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"loam/driver/qtest"
	"loam/driver/rng"
	"loam/driver/virtio"
)

// The device returns the bytes of QEMU's source, with every kind of interrupt.
func TestQEMU(t *testing.T) {
	for _, w := range qtest.Ways {
		t.Run(w.Name, func(t *testing.T) {
			m, d := open(t, w)
			p := make([]byte, 2000)
			if n, err := d.Read(p); n != len(p) || err != nil {
				t.Fatalf("Read = %d, %v", n, err)
			}
			if want := bytes.Repeat([]byte("entropy "), 250); !bytes.Equal(p, want) {
				t.Errorf("got %q, want %q", p[:40], want[:40])
			}
			if err := d.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
			if _, err := d.Read(p); !errors.Is(err, virtio.ErrClosed) {
				t.Errorf("Read after Close: %v", err)
			}
		})
	}
}

func open(t *testing.T, w qtest.Way) (*qtest.Machine, *rng.Device) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "random")
	if err := os.WriteFile(source, bytes.Repeat([]byte("entropy "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	m, v := w.Start(t, "virtio-rng", "rng=r", "-object", "rng-random,id=r,filename="+source)
	d, err := rng.Open(v)
	if err != nil {
		t.Fatal(err)
	}
	return m, d
}
