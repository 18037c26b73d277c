package blk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"loam/driver/blk"
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
			m, v := w.Start(t, "virtio-blk", "drive=d", "-drive", "if=none,id=d,format=raw,discard=unmap,file="+path)
			d, err := blk.Open(v)
			if err != nil {
				t.Fatal(err)
			}
			if d.Size() != size || !d.Info().Flushes || !d.Info().Zeroes || !d.Info().Discards {
				t.Errorf("%d bytes, %+v", d.Size(), d.Info())
			}
			got := make([]byte, size)
			if n, err := d.ReadAt(got, 0); n != size || err != nil || !bytes.Equal(got, content) {
				t.Fatalf("ReadAt = %d, %v", n, err)
			}
			text := bytes.Repeat([]byte("written "), 25_600)
			copy(content[4096:], text)
			if n, err := d.WriteAt(text, 4096); n != len(text) || err != nil {
				t.Fatalf("WriteAt = %d, %v", n, err)
			}
			clear(content[512<<10 : 640<<10])
			if err := d.WriteZeroes(512<<10, 128<<10); err != nil {
				t.Error(err)
			}
			if err := d.Discard(768<<10, 64<<10); err != nil {
				t.Error(err)
			}
			if err := d.Flush(); err != nil {
				t.Error(err)
			}
			file, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(file[:768<<10], content[:768<<10]) {
				t.Errorf("the file differs, %v", err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	}
}
