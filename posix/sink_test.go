package posix

import (
	"syscall"
	"testing"

	"loam/fs"
	"loam/fs/pseudo"
)

// devices is a process with a /dev.
func devices(t *testing.T) *Process {
	t.Helper()
	p := files(t)
	v, _, errno := p.at(atFDCWD, "/")
	ok(t, errno)
	ok(t, toErrno(v.Mkdir(v.Root, "/dev", 0o755)))
	if err := pseudo.Devices(v); err != nil {
		t.Fatal(err)
	}
	return p
}

// What is written to a device that is the same at every offset goes by a shorter way,
// and comes to the same.
func TestSink(t *testing.T) {
	p := devices(t)
	b := []byte("text")
	for _, c := range []struct {
		path  string
		flags int
		want  Errno
	}{
		{"/dev/null", syscall.O_WRONLY, 0},
		{"/dev/null", syscall.O_RDWR | syscall.O_APPEND, 0},
		{"/dev/zero", syscall.O_RDWR, 0},
		{"/dev/null", syscall.O_RDONLY, syscall.EBADF},
		{"/dev/null", syscall.O_RDWR | int(fs.PathOnly), syscall.EBADF},
		{"/dev/full", syscall.O_WRONLY, syscall.ENOSPC},
	} {
		fd, errno := p.OpenAt(atFDCWD, c.path, c.flags, 0)
		if errno != 0 {
			t.Fatalf("open %s: %v", c.path, errno)
		}
		if n, errno := p.Write(fd, b); errno != c.want || errno == 0 && n != len(b) {
			t.Errorf("write to %s, opened with %#o: %d, %v; want %v", c.path, c.flags, n, errno, c.want)
		}
		p.Close(fd)
	}
}

func TestSinkAllocatesNothing(t *testing.T) {
	p := devices(t)
	fd, errno := p.OpenAt(atFDCWD, "/dev/null", syscall.O_WRONLY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	b := make([]byte, 1)
	if n := testing.AllocsPerRun(100, func() { p.Write(fd, b) }); n != 0 {
		t.Errorf("a write allocates %v times", n)
	}
}
