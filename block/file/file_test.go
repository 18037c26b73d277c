package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/file"
)

// image creates a file of n bytes in dir.
func image(t testing.TB, dir string, n int64) string {
	t.Helper()
	path := filepath.Join(dir, "image")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(n), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string, c file.Config) *file.Device {
	t.Helper()
	d, err := file.Open(path, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The test suite of package blocktest passes with O_DIRECT, if the temporary folder allows it, and with the page
// cache.
func TestConformance(t *testing.T) {
	for name, c := range map[string]file.Config{"default": {}, "buffered": {Buffered: true}, "one worker": {Workers: 1}} {
		t.Run(name, func(t *testing.T) {
			path := image(t, t.TempDir(), blocktest.MinSize)
			blocktest.Run(t, func(t testing.TB) block.Device { return open(t, path, c) })
		})
	}
}

// Written data is still there when the file is opened again, and a hole takes no space.
func TestPersists(t *testing.T) {
	path := image(t, t.TempDir(), blocktest.MinSize)
	d := open(t, path, file.Config{})
	t.Logf("O_DIRECT: %v", d.Direct())
	p := bytes.Repeat([]byte("persists"), 64<<10)
	o := block.NewIO(d)
	if _, err := o.WriteAt(p, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.Flush(), o.Discard(0, 256<<10), d.Close()); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil || st.Blocks*512 > 300<<10 {
		t.Errorf("%d bytes are allocated, %v", st.Blocks*512, err)
	}
	d = open(t, path, file.Config{ReadOnly: true})
	defer d.Close()
	got := make([]byte, 256<<10)
	if _, err := block.NewIO(d).ReadAt(got, 256<<10); err != nil || !bytes.Equal(got, p[256<<10:]) {
		t.Errorf("the file has something else, %v", err)
	}
	if _, err := block.NewIO(d).WriteAt(got, 0); !errors.Is(err, block.ErrReadOnly) {
		t.Errorf("WriteAt: %v", err)
	}
}

// After another process has truncated the file, reads return an error, not zeros.
func TestTruncated(t *testing.T) {
	path := image(t, t.TempDir(), blocktest.MinSize)
	d := open(t, path, file.Config{})
	defer d.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := block.NewIO(d).ReadAt(make([]byte, 8192), 0); !errors.Is(err, block.ErrIO) {
		t.Errorf("ReadAt: %v, want ErrIO", err)
	}
}

func TestRefuses(t *testing.T) {
	if _, err := file.Open(image(t, t.TempDir(), 1000), file.Config{}); !errors.Is(err, block.ErrInvalid) {
		t.Errorf("1000 bytes: %v", err)
	}
	if _, err := file.Open("/nowhere", file.Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func BenchmarkDevice(b *testing.B) {
	path := image(b, b.TempDir(), blocktest.MinSize)
	blocktest.Bench(b, func(t testing.TB) block.Device { return open(t, path, file.Config{}) })
}
