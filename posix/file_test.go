package posix

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// files returns a process of user 0 with an empty tree and no network.
func files(t testing.TB) *Process {
	t.Helper()
	p := New(Options{Credentials: Credentials{PID: 7}})
	t.Cleanup(p.fds.RemoveAll)
	return p
}

const create = linux.O_CREAT | linux.O_RDWR

func write(t testing.TB, p *Process, fd int, text string) {
	t.Helper()
	n, errno := p.Write(fd, []byte(text))
	if n != len(text) || errno != 0 {
		t.Fatalf("write of %d bytes: %d, %v", len(text), n, errno)
	}
}

func read(t testing.TB, p *Process, fd int) string {
	t.Helper()
	b := make([]byte, 1<<17)
	n, errno := p.Read(fd, b)
	ok(t, errno)
	return string(b[:n])
}

// contents reads a whole file through a new descriptor.
func contents(t testing.TB, p *Process, path string) string {
	t.Helper()
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, path, linux.O_RDONLY, 0))
	defer p.Close(f)
	return read(t, p, f)
}

// A descriptor made by dup(2) shares the offset; a second open has its own.
func TestOffsets(t *testing.T) {
	p := files(t)
	a := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	if a != 0 {
		t.Errorf("the first descriptor is %d", a)
	}
	b := fd(t)(p.Dup(a))
	write(t, p, a, "one")
	write(t, p, b, "two")
	if got := contents(t, p, "/a"); got != "onetwo" {
		t.Errorf("through two descriptors: %q", got)
	}
	at, errno := p.Lseek(a, -3, 1)
	if ok(t, errno); at != 3 || read(t, p, b) != "two" {
		t.Errorf("lseek of one moves the other: at %d", at)
	}
	n, errno := p.Pwrite(a, []byte("X"), 0)
	if ok(t, errno); n != 1 || contents(t, p, "/a") != "Xnetwo" {
		t.Errorf("pwrite: %d", n)
	}
	again := fd(t)(p.OpenAt(linux.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", a), linux.O_RDONLY, 0))
	if got := read(t, p, again); got != "Xnetwo" {
		t.Errorf("opened again: %q", got)
	}
	_, errno = p.Write(again, []byte("x"))
	wantErrno(t, errno, linux.EBADF, "write to what is open for reading")
	name, errno := p.ReadlinkAt(linux.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", b))
	if ok(t, errno); name != "/a" {
		t.Errorf("/proc/self/fd says %q", name)
	}
}

// Concurrent writes with O_APPEND are neither mixed nor lost (open(2)).
func TestAppend(t *testing.T) {
	p := files(t)
	const writers, lines = 8, 200
	var wg sync.WaitGroup
	for i := range writers {
		f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/log", create|linux.O_APPEND, 0o600))
		wg.Go(func() {
			for range lines {
				p.Write(f, []byte(strings.Repeat(string(rune('a'+i)), 99)+"\n"))
			}
		})
	}
	wg.Wait()
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/log", linux.O_RDONLY, 0))
	var all strings.Builder
	for part := read(t, p, f); part != ""; part = read(t, p, f) {
		all.WriteString(part)
	}
	got := map[string]int{}
	for line := range strings.Lines(all.String()) {
		got[line]++
	}
	for i := range writers {
		if n := got[strings.Repeat(string(rune('a'+i)), 99)+"\n"]; n != lines {
			t.Errorf("%d of %d lines of writer %d", n, lines, i)
		}
	}
	// F_SETFL sets O_APPEND, and later clears it.
	_, errno := p.Fcntl(f, linux.F_SETFL, linux.O_APPEND)
	ok(t, errno)
	if flags, _ := p.Fcntl(f, linux.F_GETFL, 0); flags != linux.O_APPEND {
		t.Errorf("F_GETFL says %#x", flags)
	}
}

// names lists a directory by getdents64 with a buffer of size bytes.
func names(t testing.TB, p *Process, path string, size int) []string {
	t.Helper()
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, path, linux.O_RDONLY|linux.O_DIRECTORY, 0))
	defer p.Close(f)
	var list []string
	b := make([]byte, size)
	for {
		n, errno := p.Getdents(f, b)
		if ok(t, errno); n == 0 {
			return list
		}
		for d := b[:n]; len(d) > 0; d = d[binary.NativeEndian.Uint16(d[16:]):] {
			name, _, _ := strings.Cut(string(d[direntHeader:]), "\x00")
			list = append(list, name)
		}
	}
}

func TestGetdents(t *testing.T) {
	p := files(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/d", 0o755))
	const count = 100_000
	for i := range count {
		f := fd(t)(p.OpenAt(linux.AT_FDCWD, fmt.Sprintf("/d/file-%06d", i), create, 0o600))
		ok(t, p.Close(f))
	}
	list := names(t, p, "/d", 8192)
	if len(list) != count+2 || list[0] != "." || list[1] != ".." || list[2] != "file-000000" {
		t.Errorf("%d names, first %q", len(list), list[:3])
	}
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/d", linux.O_RDONLY, 0))
	_, errno := p.Getdents(f, make([]byte, 8))
	wantErrno(t, errno, linux.EINVAL, "no room for one entry")
	_, errno = p.Read(f, make([]byte, 8))
	wantErrno(t, errno, linux.EISDIR, "read of a directory")
}

// Relative paths start at the working directory or at dirfd, even after that directory has been
// renamed.
func TestRelativePaths(t *testing.T) {
	p := files(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/a", 0o777))
	if st, _ := p.StatAt(linux.AT_FDCWD, "/a", 0); st.Mode != fs.Dir|0o755 {
		t.Errorf("under the umask: %o", st.Mode)
	}
	d := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", linux.O_RDONLY, 0))
	ok(t, p.RenameAt(linux.AT_FDCWD, "/a", linux.AT_FDCWD, "/b", 0))
	ok(t, p.SymlinkAt("../b/target", d, "link"))
	f := fd(t)(p.OpenAt(d, "link", create, 0o644))
	write(t, p, f, "x")
	ok(t, p.Chdir("/b"))
	if st, errno := p.StatAt(linux.AT_FDCWD, "target", 0); errno != 0 || st.Size != 1 {
		t.Errorf("target: %v, %v", st, errno)
	}
	if dir, _ := p.Getcwd(); dir != "/b" {
		t.Errorf("working directory %q", dir)
	}
	if st, _ := p.StatAt(d, "link", linux.AT_SYMLINK_NOFOLLOW); st.Mode.Type() != fs.Symlink {
		t.Errorf("lstat says %o", st.Mode)
	}
	ok(t, p.UnlinkAt(d, "target", 0))
	ok(t, p.UnlinkAt(d, "link", 0))
	ok(t, p.Chdir("/"))
	ok(t, p.UnlinkAt(linux.AT_FDCWD, "b", linux.AT_REMOVEDIR))
	_, errno := p.OpenAt(d, "x", create, 0o600)
	wantErrno(t, errno, linux.ENOENT, "a file in a directory that is gone")
	if read(t, p, f) != "" {
		t.Error("the file without a name has lost its offset")
	}
	_, errno = p.OpenAt(f, "x", linux.O_RDONLY, 0)
	wantErrno(t, errno, linux.ENOTDIR, "below a file")
	_, errno = p.OpenAt(99, "x", linux.O_RDONLY, 0)
	wantErrno(t, errno, linux.EBADF, "below nothing")
}

func TestCopies(t *testing.T) {
	p := files(t)
	a := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	b := fd(t)(p.OpenAt(linux.AT_FDCWD, "/b", create, 0o600))
	text := strings.Repeat("0123456789", 20_000)
	write(t, p, a, text)
	zero := int64(0)
	n, errno := p.CopyFileRange(a, &zero, b, nil, 1<<20)
	if ok(t, errno); n != len(text) || zero != int64(n) {
		t.Errorf("copied %d, offset %d", n, zero)
	}
	if st, _ := p.Fstat(b); st.Size != int64(len(text)) {
		t.Errorf("the copy has %d bytes", st.Size)
	}
	pipe, errno := p.Pipe2(0)
	ok(t, errno)
	ten := int64(10)
	n, errno = p.Sendfile(pipe[1], a, &ten, 5)
	if ok(t, errno); n != 5 || ten != 15 || read(t, p, pipe[0]) != "01234" {
		t.Errorf("sendfile: %d, offset %d", n, ten)
	}
	_, errno = p.Sendfile(b, pipe[0], nil, 5)
	wantErrno(t, errno, linux.EINVAL, "sendfile from a pipe")
	wantErrno(t, p.Truncate("/missing", -1), linux.EINVAL, "truncate of a missing file to a negative size")
	ok(t, p.Ftruncate(b, 3))
	ok(t, p.Fallocate(b, 0, 0, 10))
	if st, _ := p.Fstat(b); st.Size != 10 {
		t.Errorf("after fallocate %d bytes", st.Size)
	}
}

func TestTimes(t *testing.T) {
	p := files(t)
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	ok(t, p.UtimensAt(linux.AT_FDCWD, "/a", Moment{Time: 5}, Moment{Omit: true}, 0))
	st, _ := p.Fstat(f)
	if st.Access != 5 || st.Modify == 5 {
		t.Errorf("access %d, modify %d", st.Access, st.Modify)
	}
	ok(t, p.UtimensAt(f, "", Moment{Now: true}, Moment{Time: 7}, 0))
	if st, _ := p.Fstat(f); st.Access == 5 || st.Modify != 7 {
		t.Errorf("by descriptor: access %d, modify %d", st.Access, st.Modify)
	}
}

// Permissions apply to every user but 0.
func TestPermissions(t *testing.T) {
	p := New(Options{Credentials: Credentials{UID: 1000, GID: 1000}})
	_, errno := p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600)
	wantErrno(t, errno, linux.EACCES, "a file in a folder of user 0")
	wantErrno(t, p.Chroot("/"), linux.EPERM, "chroot")
	wantErrno(t, p.AccessAt(linux.AT_FDCWD, "/", 2, 0), linux.EACCES, "access")
	ok(t, p.AccessAt(linux.AT_FDCWD, "/", 5, 0))
}

// sync_file_range(2) checks its arguments and does nothing else.
func TestSyncFileRange(t *testing.T) {
	p := files(t)
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	ok(t, p.SyncFileRange(f, 0, 0, 7))
	wantErrno(t, p.SyncFileRange(f, 0, 0, 8), linux.EINVAL, "a flag that there is not")
	wantErrno(t, p.SyncFileRange(f, -1, 0, 0), linux.EINVAL, "before the file")
	wantErrno(t, p.SyncFileRange(f, 1<<62, 1<<62, 0), linux.EINVAL, "beyond all files")
	wantErrno(t, p.SyncFileRange(999, 0, 0, 0), linux.EBADF, "no descriptor")
	fds, errno := p.Pipe2(0)
	ok(t, errno)
	wantErrno(t, p.SyncFileRange(fds[0], 0, 0, 0), linux.ESPIPE, "a pipe")
}

// Mode, owner and times of a socket can be set, without any effect.
func TestChangesOfSocket(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Fchmod(s, 0o600))
	ok(t, p.Fchown(s, 0, 0))
	ok(t, p.UtimensAt(s, "", Moment{Now: true}, Moment{Now: true}, 0))
}

// A file without a name gets one through its descriptor (open(2), O_TMPFILE).
func TestTempFile(t *testing.T) {
	p := process(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/d", 0o755))
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/d/", tempFile|linux.O_RDWR, 0o600))
	name, errno := p.ReadlinkAt(linux.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f))
	st, errno2 := p.Fstat(f)
	if want := fmt.Sprintf("/d/#%d (deleted)", st.Inode); name != want || errno != 0 || errno2 != 0 || st.Links != 0 {
		t.Errorf("its name is %q, %v, want %q; %d links, %v", name, errno, want, st.Links, errno2)
	}
	if flags, errno := p.Fcntl(f, linux.F_GETFL, 0); errno != 0 || flags&tempFile != tempFile {
		t.Errorf("its flags are %#o, %v", flags, errno)
	}
	ok(t, p.LinkAt(linux.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f), linux.AT_FDCWD, "/d/a", linux.AT_SYMLINK_FOLLOW))
	ok(t, p.LinkAt(f, "", linux.AT_FDCWD, "/d/b", linux.AT_EMPTY_PATH))
	st, errno = p.StatAt(linux.AT_FDCWD, "/d/b", 0)
	if st.Links != 2 || errno != 0 {
		t.Errorf("it has %d links, %v", st.Links, errno)
	}
	f = fd(t)(p.OpenAt(linux.AT_FDCWD, "/d", tempFile|linux.O_RDWR|linux.O_EXCL, 0o600))
	if errno := p.LinkAt(f, "", linux.AT_FDCWD, "/d/c", linux.AT_EMPTY_PATH); errno != linux.ENOENT {
		t.Errorf("with O_EXCL: %v", errno)
	}
}
