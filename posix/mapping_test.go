package posix

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/mapping"
)

// addresses is an fs.Memory whose content is never accessed.
type addresses struct{ at, size uint64 }

func (a addresses) Address() uint64               { return a.at }
func (a addresses) Size() int64                   { return int64(a.size) }
func (a addresses) Bytes(n int64) ([]byte, error) { return make([]byte, n), nil }
func (a addresses) Clear(int64, int64)            {}
func (a addresses) Free()                         {}

const mib = 1 << 20

// reserveAt returns a Reserve that allocates at least 1 MiB each time, at ascending addresses.
func reserveAt() fs.Reserve {
	next := uint64(0)
	return func(size int64) (fs.Memory, error) {
		next += 16 * mib
		return addresses{next, max(uint64(size), mib)}, nil
	}
}

// munmap(2) accepts parts of mappings of any size, in any order.
func TestUnmapShared(t *testing.T) {
	p, reserve := process(t), reserveAt()
	fd := fd(t)(openFile(p))
	const page, at = mapping.Page, 16 * mib
	for i := range 2 {
		got, errno := p.MapShared(fd, 10*page, 0, reserve)
		if errno != 0 || got != at {
			t.Fatalf("mapping %d: %#x, %v", i, got, errno)
		}
	}
	ok(t, p.Close(fd))
	p.UnmapShared(at, 10*page)
	for _, c := range []struct{ from, to, first, last uint64 }{{3, 5, 2, 5}, {0, 1, 1, 9}, {8, 10, 5, 7}, {2, 7, 1, 7}} {
		p.UnmapShared(at+c.from*page, (c.to-c.from)*page)
		if p.Shares(at+c.from*page, (c.to-c.from)*page) {
			t.Errorf("%+v: still there", c)
		}
		if !p.Shares(at+c.first*page, page) || !p.Shares(at+(c.last)*page, page) {
			t.Errorf("%+v: more is gone", c)
		}
	}
	p.UnmapShared(at, 10*page)
	if p.Shares(0, 1<<40) {
		t.Error("a mapping is left")
	}
}

func TestRemapShared(t *testing.T) {
	p, reserve := process(t), reserveAt()
	fd := fd(t)(openFile(p))
	at, errno := p.MapShared(fd, mapping.Page, mapping.Page, reserve)
	ok(t, errno)
	size := uint64(mapping.Page)
	for _, c := range []struct {
		size  uint64
		flags int
		want  uint64
		errno Errno
	}{
		{mib - mapping.Page, 0, at, 0},
		{mib, 0, at, linux.ENOMEM},
		{0, 0, at, linux.EINVAL},
		{mib, 2, at, linux.EINVAL},
		{mib, 1, at + 16*mib, 0},
		{mapping.Page, 0, at + 16*mib, 0},
	} {
		got, errno := p.RemapShared(at, size, c.size, c.flags, reserve)
		if errno != c.errno || errno == 0 && got != c.want {
			t.Errorf("%+v: %#x, %v", c, got, errno)
		}
		if errno == 0 {
			at, size = got, c.size
		}
	}
	_, errno = p.RemapShared(at, 2*mapping.Page, mib, 1, reserve)
	wantErrno(t, errno, linux.EFAULT, "more than a mapping")
}
