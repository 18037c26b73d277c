package virtioblk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"loam/block/blocktest"
	"loam/block/virtioblk"
	"loam/driver/qtest"
)

// Data that is written to QEMU's disk is in its file, and reads return the data of the file.
func TestQEMU(t *testing.T) {
	for _, w := range qtest.Ways {
		t.Run(w.Name, func(t *testing.T) {
			const size = 1 << 20
			path := filepath.Join(t.TempDir(), "disk")
			content := bytes.Repeat([]byte("0123456789abcdef"), size/16)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			m, v := w.Start(t, "virtio-blk", "drive=d,num-queues=2", "-drive", "if=none,id=d,format=raw,discard=unmap,file="+path)
			d, err := virtioblk.Open(v, virtioblk.Config{Queues: 4})
			if err != nil {
				t.Fatal(err)
			}
			if i := d.Info(); d.Size() != size || !i.Volatile || i.MaxZeroes == 0 || i.MaxDiscard == 0 || d.Queues() != 2 {
				t.Errorf("%d bytes, %d queues, %+v", d.Size(), d.Queues(), i)
			}
			blocktest.CheckFile(t, d, path, content)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	}
}
