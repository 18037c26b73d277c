package virtioblk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"loam/block"
	"loam/block/virtioblk"
	"loam/driver/qtest"
)

// QEMU's disk has in its file what was written, and gives back what is there.
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
			checkFile(t, d, path, content)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
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
