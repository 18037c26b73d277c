package blocktest

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"loam/block"
)

// Helpers for the tests of drivers.

// CheckFile reads, writes, zeroes and discards sectors of d, and compares d with the file at path,
// whose initial contents are content.
func CheckFile(t testing.TB, d block.Device, path string, content []byte) {
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

// Exercise makes some requests at the same time, and ignores their results.
func Exercise(d block.Device) {
	o := block.NewIO(d)
	var all sync.WaitGroup
	for i := range int64(3) {
		all.Go(func() {
			p := make([]byte, 8192)
			o.ReadAt(p, i*4096)
			o.WriteFUA(p, i*8192)
			o.WriteZeroes(0, 4096, 0)
			o.Discard(0, 4096)
			o.Flush()
		})
	}
	all.Wait()
}
