package posix

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// TestOpenAt2 calls openat2(2). The program unikernel/testdata/guest/bounds makes these and further calls on Linux.
func TestOpenAt2(t *testing.T) {
	p := files(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/top", 0o700))
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/top/a", 0o700))
	for _, path := range []string{"/outside", "/top/file"} {
		p.Close(fd(t)(p.OpenAt(linux.AT_FDCWD, path, create, 0o600)))
	}
	ok(t, p.SymlinkAt("/outside", linux.AT_FDCWD, "/top/out"))
	ok(t, p.MknodAt(linux.AT_FDCWD, "/top/fifo", linux.S_IFIFO|0o600, 0))
	dir := fd(t)(p.OpenAt(linux.AT_FDCWD, "/top", linux.O_RDONLY, 0))
	for _, c := range []struct {
		path   string
		bounds fs.Resolve
		want   Errno
	}{
		{"a/../file", fs.Beneath, 0}, {"../outside", fs.Beneath, linux.EXDEV}, {"/file", fs.Beneath, linux.EXDEV},
		{"out", fs.Beneath, linux.EXDEV}, {"out", fs.NoLinks, linux.ELOOP}, {"out", fs.InRoot, linux.ENOENT},
		{"/file", fs.InRoot, 0}, {"../../file", fs.InRoot, 0}, {"out", 0, 0}, {"file", fs.InRoot | fs.Beneath, linux.EINVAL},
		{"/", fs.InRoot, 0}, {"/" + strings.Repeat("./", 2045) + "file", fs.InRoot, 0}, {"/", fs.Beneath, linux.EXDEV}, {"fifo", fs.Beneath, 0}, {"/fifo", fs.InRoot, 0}, {"fifo", fs.NoLinks, 0},
	} {
		f, errno := p.OpenAt2(dir, c.path, OpenHow{Flags: linux.O_NONBLOCK, Resolve: uint64(c.bounds)})
		if errno != c.want {
			t.Errorf("%s with bounds %d: %v, want %v", c.path, c.bounds, errno, c.want)
		}
		if errno == 0 {
			p.Close(f)
		}
	}
}
