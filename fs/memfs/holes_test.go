package memfs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// seeker is a file of Loam or of Linux.
type seeker interface {
	Seek(offset int64, whence int) (int64, error)
}

// sparse lists seeks in a file with holes, and their results; -1 is ENXIO. The file has a page at 0,
// three bytes in the page at 8192, and a last page at 5 MiB.
var sparse = []struct {
	from   int64
	whence int
	want   int64
}{
	{0, fs.SeekData, 0}, {5, fs.SeekData, 5}, {0, fs.SeekHole, 4096}, {4095, fs.SeekHole, 4096},
	{4096, fs.SeekHole, 4096}, {5000, fs.SeekHole, 5000}, {4096, fs.SeekData, 8192}, {8191, fs.SeekData, 8192},
	{8200, fs.SeekData, 8200}, {8200, fs.SeekHole, 12288}, {12288, fs.SeekData, 5 << 20},
	{5 << 20, fs.SeekHole, 5<<20 + 4096}, {5<<20 + 4095, fs.SeekHole, 5<<20 + 4096},
	{5<<20 + 4096, fs.SeekHole, -1}, {5<<20 + 4096, fs.SeekData, -1}, {-1, fs.SeekData, -1},
}

func checkSparse(t *testing.T, name string, f interface {
	seeker
	WriteAt([]byte, int64) (int, error)
	Truncate(int64) error
},
) {
	t.Helper()
	for at, n := range map[int64]int{0: 4096, 8195: 3, 5 << 20: 4096} {
		if _, err := f.WriteAt(make([]byte, n), at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range sparse {
		at, err := f.Seek(c.from, c.whence)
		if c.want < 0 && !errors.Is(err, linux.ENXIO) || c.want >= 0 && (at != c.want || err != nil) {
			t.Errorf("%s: %d from %d: %d, %v, want %d", name, c.whence, c.from, at, err, c.want)
		}
	}
	if err := f.Truncate(8 << 20); err != nil {
		t.Fatal(err)
	}
	if at, err := f.Seek(6<<20, fs.SeekData); !errors.Is(err, linux.ENXIO) {
		t.Errorf("%s: data behind the last page: %d, %v", name, at, err)
	}
	if at, err := f.Seek(6<<20, fs.SeekHole); at != 6<<20 || err != nil {
		t.Errorf("%s: a hole there: %d, %v", name, at, err)
	}
}

// SEEK_DATA and SEEK_HOLE (lseek(2)) return the same as on Linux's tmpfs. The test compares with a tmpfs of the host
// if there is one.
func TestHoles(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	f, err := v.Open(v.Root, "f", fs.ReadWrite|fs.Create, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checkSparse(t, "memfs", f)
	const tmpfs, shm = 0x01021994, "/dev/shm"
	var on syscall.Statfs_t
	if syscall.Statfs(shm, &on) != nil || on.Type != tmpfs {
		return
	}
	linux, err := os.CreateTemp(shm, "loam-holes-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(linux.Name())
	defer linux.Close()
	checkSparse(t, "tmpfs", linux)
}
