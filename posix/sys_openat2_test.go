package posix

import (
	"syscall"
	"testing"

	"loam/fs"
)

// openat2(2): unikernel/testdata/guest/bounds asks Linux the same, and more.
func TestOpenAt2(t *testing.T) {
	p := files(t)
	ok(t, p.MkdirAt(atFDCWD, "/top", 0o700))
	ok(t, p.MkdirAt(atFDCWD, "/top/a", 0o700))
	for _, path := range []string{"/outside", "/top/file"} {
		p.Close(fd(t)(p.OpenAt(atFDCWD, path, create, 0o600)))
	}
	ok(t, p.SymlinkAt("/outside", atFDCWD, "/top/out"))
	dir := fd(t)(p.OpenAt(atFDCWD, "/top", syscall.O_RDONLY, 0))
	for _, c := range []struct {
		path   string
		bounds fs.Resolve
		want   Errno
	}{
		{"a/../file", fs.Beneath, 0}, {"../outside", fs.Beneath, syscall.EXDEV}, {"/file", fs.Beneath, syscall.EXDEV},
		{"out", fs.Beneath, syscall.EXDEV}, {"out", fs.NoLinks, syscall.ELOOP}, {"out", fs.InRoot, syscall.ENOENT},
		{"/file", fs.InRoot, 0}, {"../../file", fs.InRoot, 0}, {"out", 0, 0}, {"file", fs.InRoot | fs.Beneath, syscall.EINVAL},
	} {
		f, errno := p.OpenAt2(dir, c.path, OpenHow{Resolve: uint64(c.bounds)})
		if errno != c.want {
			t.Errorf("%s with bounds %d: %v, want %v", c.path, c.bounds, errno, c.want)
		}
		if errno == 0 {
			p.Close(f)
		}
	}
}
