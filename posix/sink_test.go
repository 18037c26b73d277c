package posix

import (
	"sync"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/posix/file"
)

// devices returns a process with a /dev.
func devices(t *testing.T) *Process {
	t.Helper()
	p := files(t)
	v, _, errno := p.at(linux.AT_FDCWD, "/")
	ok(t, errno)
	ok(t, file.ToErrno(v.Mkdir(v.Root, "/dev", 0o755)))
	if err := pseudo.Devices(v); err != nil {
		t.Fatal(err)
	}
	return p
}

// Writes to a device without offsets, such as /dev/null, take a shorter path in the code. The results are the same.
func TestSink(t *testing.T) {
	p := devices(t)
	b := []byte("text")
	for _, c := range []struct {
		path  string
		flags int
		want  Errno
	}{
		{"/dev/null", linux.O_WRONLY, 0},
		{"/dev/null", linux.O_RDWR | linux.O_APPEND, 0},
		{"/dev/zero", linux.O_RDWR, 0},
		{"/dev/null", linux.O_RDONLY, linux.EBADF},
		{"/dev/null", linux.O_RDWR | int(fs.PathOnly), linux.EBADF},
		{"/dev/full", linux.O_WRONLY, linux.ENOSPC},
	} {
		fd, errno := p.OpenAt(linux.AT_FDCWD, c.path, c.flags, 0)
		if errno != 0 {
			t.Fatalf("open %s: %v", c.path, errno)
		}
		if n, errno := p.Write(fd, b); errno != c.want || errno == 0 && n != len(b) {
			t.Errorf("write to %s, opened with %#o: %d, %v; want %v", c.path, c.flags, n, errno, c.want)
		}
		p.Close(fd)
	}
}

// mmap of /dev/zero maps anonymous memory: ForMapping returns no file. Other devices cannot be mapped (LTP's mprotect01).
func TestMapZero(t *testing.T) {
	p := devices(t)
	zero := fd(t)(p.OpenAt(linux.AT_FDCWD, "/dev/zero", linux.O_RDONLY, 0))
	if m, errno := p.ForMapping(zero); errno != 0 || m.Node != nil || m.Flags.MayWrite() {
		t.Errorf("/dev/zero: %+v, %v", m, errno)
	}
	null := fd(t)(p.OpenAt(linux.AT_FDCWD, "/dev/null", linux.O_RDONLY, 0))
	_, errno := p.ForMapping(null)
	wantErrno(t, errno, linux.ENODEV, "/dev/null")
}

// Reads from a device without offsets, such as /dev/zero, take a shorter path, too.
func TestSource(t *testing.T) {
	p := devices(t)
	for _, c := range []struct {
		path  string
		flags int
		n     int
		want  Errno
	}{
		{"/dev/null", linux.O_RDONLY, 0, 0},
		{"/dev/zero", linux.O_RDWR, 4, 0},
		{"/dev/full", linux.O_RDONLY, 4, 0},
		{"/dev/urandom", linux.O_RDONLY, 4, 0},
		{"/dev/zero", linux.O_WRONLY, -1, linux.EBADF},
		{"/dev/zero", linux.O_RDWR | int(fs.PathOnly), -1, linux.EBADF},
	} {
		fd, errno := p.OpenAt(linux.AT_FDCWD, c.path, c.flags, 0)
		if errno != 0 {
			t.Fatalf("open %s: %v", c.path, errno)
		}
		if n, errno := p.Read(fd, []byte("text")); n != c.n || errno != c.want {
			t.Errorf("read of %s, opened with %#o: %d, %v; want %d, %v", c.path, c.flags, n, errno, c.n, c.want)
		}
		p.Close(fd)
	}
}

// Immediate is true exactly for files that never wait.
func TestImmediate(t *testing.T) {
	p := devices(t)
	regular, errno := p.OpenAt(linux.AT_FDCWD, "/regular", linux.O_CREAT|linux.O_RDWR, 0o600)
	ok(t, errno)
	null, errno := p.OpenAt(linux.AT_FDCWD, "/dev/null", linux.O_RDWR, 0)
	ok(t, errno)
	folder, errno := p.OpenAt(linux.AT_FDCWD, "/dev", linux.O_RDONLY, 0)
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

// A file may be closed and unlinked while other goroutines write to it. Their writes succeed or return
// EBADF, and the file's memory is freed.
func TestCloseAgainstWrite(t *testing.T) {
	p := New(Options{Files: fs.NewTree(memfs.New(memfs.Config{Bytes: 1 << 20, Files: 10}))})
	t.Cleanup(p.fds.RemoveAll)
	v, _, errno := p.at(linux.AT_FDCWD, "/")
	ok(t, errno)
	before := v.Root.Usage()
	for range 200 {
		fd, errno := p.OpenAt(linux.AT_FDCWD, "/f", linux.O_CREAT|linux.O_RDWR, 0o600)
		ok(t, errno)
		o := p.Opened(fd)
		var writers sync.WaitGroup
		for range 2 {
			writers.Go(func() {
				for range 20 {
					if n, errno := p.WriteOpened(o, []byte("text")); errno != linux.EBADF && (errno != 0 || n != 4) {
						t.Errorf("write: %d, %v", n, errno)
					}
				}
			})
		}
		ok(t, file.ToErrno(v.Unlink(v.Root, "/f")))
		ok(t, p.Close(fd))
		writers.Wait()
	}
	if after := v.Root.Usage(); after != before {
		t.Errorf("memory is lost: %+v, before %+v", after, before)
	}
}

func TestSinkAllocatesNothing(t *testing.T) {
	p := devices(t)
	fd, errno := p.OpenAt(linux.AT_FDCWD, "/dev/null", linux.O_WRONLY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	b := make([]byte, 1)
	if n := testing.AllocsPerRun(100, func() { p.Write(fd, b) }); n != 0 {
		t.Errorf("a write allocates %v times", n)
	}
}

// RNDGETENTCNT returns the entropy of a random device, as /proc/sys/kernel/random/entropy_avail does on Linux. Other
// devices have none.
func TestEntropy(t *testing.T) {
	p := devices(t)
	for path, want := range map[string]Errno{"/dev/random": 0, "/dev/urandom": 0, "/dev/zero": linux.ENOTTY} {
		file := fd(t)(p.OpenAt(linux.AT_FDCWD, path, linux.O_RDONLY, 0))
		if n, errno := p.Ioctl(file, linux.RNDGETENTCNT, 0); errno != want || errno == 0 && n != 256 {
			t.Errorf("%s: %d, %v, want %v", path, n, errno, want)
		}
	}
}
