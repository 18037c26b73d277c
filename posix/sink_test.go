package posix

import (
	"sync"
	"syscall"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
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

// Reads likewise.
func TestSource(t *testing.T) {
	p := devices(t)
	for _, c := range []struct {
		path  string
		flags int
		n     int
		want  Errno
	}{
		{"/dev/null", syscall.O_RDONLY, 0, 0},
		{"/dev/zero", syscall.O_RDWR, 4, 0},
		{"/dev/full", syscall.O_RDONLY, 4, 0},
		{"/dev/urandom", syscall.O_RDONLY, 4, 0},
		{"/dev/zero", syscall.O_WRONLY, -1, syscall.EBADF},
		{"/dev/zero", syscall.O_RDWR | int(fs.PathOnly), -1, syscall.EBADF},
	} {
		fd, errno := p.OpenAt(atFDCWD, c.path, c.flags, 0)
		if errno != 0 {
			t.Fatalf("open %s: %v", c.path, errno)
		}
		if n, errno := p.Read(fd, []byte("text")); n != c.n || errno != c.want {
			t.Errorf("read of %s, opened with %#o: %d, %v; want %d, %v", c.path, c.flags, n, errno, c.n, c.want)
		}
		p.Close(fd)
	}
}

// Which files keep nobody waiting.
func TestImmediate(t *testing.T) {
	p := devices(t)
	regular, errno := p.OpenAt(atFDCWD, "/regular", syscall.O_CREAT|syscall.O_RDWR, 0o600)
	ok(t, errno)
	null, errno := p.OpenAt(atFDCWD, "/dev/null", syscall.O_RDWR, 0)
	ok(t, errno)
	folder, errno := p.OpenAt(atFDCWD, "/dev", syscall.O_RDONLY, 0)
	ok(t, errno)
	pipe, errno := p.Pipe2(0)
	ok(t, errno)
	for fd, want := range map[int]bool{regular: true, null: true, folder: false, pipe[0]: false, pipe[1]: false} {
		if got := p.Opened(fd).Immediate(); got != want {
			t.Errorf("descriptor %d: %v, want %v", fd, got, want)
		}
	}
	if p.Opened(100) != nil || p.Opened(-1) != nil {
		t.Error("descriptors that are not open are")
	}
}

// A file that is closed, and whose last name goes, while others who found it before
// write to it: they write, or get EBADF, and its memory is given back.
func TestCloseAgainstWrite(t *testing.T) {
	p := New(Options{Files: fs.NewTree(memfs.New(memfs.Config{Bytes: 1 << 20, Files: 10}))})
	t.Cleanup(p.fds.removeAll)
	v, _, errno := p.at(atFDCWD, "/")
	ok(t, errno)
	before := v.Root.Usage()
	for range 200 {
		fd, errno := p.OpenAt(atFDCWD, "/f", syscall.O_CREAT|syscall.O_RDWR, 0o600)
		ok(t, errno)
		o := p.Opened(fd)
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() {
				for range 20 {
					if n, errno := o.Write([]byte("text")); errno != syscall.EBADF && (errno != 0 || n != 4) {
						t.Errorf("write: %d, %v", n, errno)
					}
				}
			})
		}
		ok(t, toErrno(v.Unlink(v.Root, "/f")))
		ok(t, p.Close(fd))
		writers.Wait()
	}
	if after := v.Root.Usage(); after != before {
		t.Errorf("memory is lost: %+v, before %+v", after, before)
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
