package ninep_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/fstest"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
	"loam/internal/race"
)

// dial returns the two ends of a Unix socket.
func dial(t testing.TB) (client, served net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return ends[0], ends[1]
}

// export serves a folder and returns it as a file system. Both ends of the connection are closed after the test.
func export(t testing.TB, folder string, c ninep.Config, sc server.Config) *ninep.FileSystem {
	t.Helper()
	return exportTo(t, folder, c, sc, func(c net.Conn) io.ReadWriteCloser { return c })
}

// exportTo is like export, but the function wrap wraps the client's end of the connection.
func exportTo(t testing.TB, folder string, c ninep.Config, sc server.Config, wrap func(net.Conn) io.ReadWriteCloser) *ninep.FileSystem {
	t.Helper()
	near, far := dial(t)
	return exportBetween(t, folder, c, sc, wrap(near), far)
}

// exportBetween is like export, but the caller makes the connection.
func exportBetween(t testing.TB, folder string, c ninep.Config, sc server.Config, near, far io.ReadWriteCloser) *ninep.FileSystem {
	t.Helper()
	f, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(far, f, sc)
		far.Close()
	}()
	s, err := ninep.New(near, c)
	if err != nil {
		t.Fatal(err)
	}
	hostOf[s] = folder
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("the server: %v", err)
		}
		f.Close()
	})
	return s
}

// hostOf maps each file system to its folder on the host.
var hostOf = map[*ninep.FileSystem]string{}

// folder returns a new folder of the host with mode 0755.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.Umask(0) // the server's process does the same
	return dir
}

// quiet is a file system that reports constant free space: other programs change the free space of the host's disk
// during a test.
type quiet struct{ *ninep.FileSystem }

func (q quiet) Usage() fs.Usage {
	u := q.FileSystem.Usage()
	u.BlocksFree, u.FilesFree = 0, 0
	return u
}

var caches = map[string]ninep.Config{"loose": {}, "none": {Cache: ninep.None}, "small messages": {Size: ninep.MinSize, Window: 8192}}

// The test suite of all file systems passes in both cache modes, and with messages of the smallest size.
func TestFileSystem(t *testing.T) {
	for name, c := range caches {
		t.Run(name, func(t *testing.T) {
			fstest.TestNames(t, manyNames(), func(t *testing.T) fs.FileSystem { return quiet{export(t, folder(t), c, server.Config{})} })
		})
	}
}

// manyNames is the number of names of a large directory.
func manyNames() int {
	if race.Enabled {
		return 1000
	}
	return 4000
}

// A directory is listed completely, even if it has more names than the client caches in total or for one directory.
func TestManyNames(t *testing.T) {
	for _, kept := range []int{manyNames() / 4, manyNames() * 3 / 2} {
		s := export(t, folder(t), ninep.Config{Names: kept}, server.Config{})
		fstest.ManyNames(t, view(s), manyNames())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func view(s fs.FileSystem) *fs.View {
	v := fs.NewView(fs.NewTree(s))
	v.Umask = 0
	return v
}

func content(t testing.TB, v *fs.View, path string) string {
	t.Helper()
	f, err := v.Open(v.Dir, path, fs.ReadOnly, 0)
	must(t, err)
	defer f.Close()
	var all []byte
	b := make([]byte, 64<<10)
	for {
		n, err := f.Read(b)
		must(t, err)
		if n == 0 {
			return string(all)
		}
		all = append(all, b[:n]...)
	}
}

func write(t testing.TB, v *fs.View, path, text string, flags fs.Flags) {
	t.Helper()
	f, err := v.Open(v.Dir, path, fs.WriteOnly|fs.Create|flags, 0o644)
	must(t, err)
	_, err = f.Write([]byte(text))
	must(t, err)
	must(t, f.Close())
}
