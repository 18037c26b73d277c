// Command files uses files as programs do, in a folder of its own. Its output is the same on Linux. Its first argument
// is the number of names in a large folder, 100,000 by default. Further arguments are tests to leave out.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing/fstest"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	dir, err := os.MkdirTemp("", "files")
	check.Nil(err, "a temporary folder")
	defer os.RemoveAll(dir)
	check.Nil(os.Chdir(dir), "chdir")
	for name, test := range map[string]func(){
		"contents": contents, "names": names, "attributes": attributes, "listing": listing, "descriptors": descriptors,
		"locks": locks, "mapping": mapping, "shared": shared, "pipes": pipes, "vectors": vectors, "devices": devices, "stack": stack, "tree": tree,
		"immediate": immediate, "memfd": memory, "xattrs": xattrs, "nameless": nameless, "watch": watch, "counters": counters,
	} {
		if len(os.Args) > 2 && slices.Contains(os.Args[2:], name) {
			continue
		}
		check.Nil(os.Mkdir(name, 0o755), name)
		check.Nil(os.Chdir(name), name)
		test()
		check.Nil(os.Chdir(".."), name)
	}
	check.Nil(os.Chdir("/"), "chdir")
	check.Nil(os.RemoveAll(dir), "remove all")
	_, err = os.Stat(dir)
	check.That(errors.Is(err, fs.ErrNotExist), "the folder is still there: %v", err)
	check.Done()
}

func errno(e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func content(name string) string {
	b, err := os.ReadFile(name)
	check.Nil(err, name)
	return string(b)
}

// contents: reading, writing, appending, truncating, holes.
func contents() {
	big := bytes.Repeat([]byte("0123456789"), 30_000)
	check.Nil(os.WriteFile("big", big, 0o644), "write")
	check.That(content("big") == string(big), "300,000 bytes came back otherwise")
	f, err := os.OpenFile("a", os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	check.Nil(err, "open")
	fmt.Fprint(f, "one")
	f.Seek(0, io.SeekStart)
	fmt.Fprint(f, "two")
	check.Equal(content("a"), "onetwo", "append")
	check.Nil(f.Truncate(4), "truncate")
	check.Nil(f.Sync(), "sync")
	check.Nil(syscall.Fdatasync(int(f.Fd())), "fdatasync")
	check.Nil(f.Close(), "close")
	check.Equal(content("a"), "onet", "truncated")
	check.Nil(os.Truncate("a", 6), "truncate by name")
	check.Equal(content("a"), "onet\x00\x00", "longer")
	f, err = os.Create("hole")
	check.Nil(err, "create")
	n, err := f.WriteAt([]byte("end"), 1<<20)
	check.That(n == 3 && err == nil, "pwrite: %d, %v", n, err)
	b := make([]byte, 4)
	n, err = f.ReadAt(b, 1<<20-1)
	check.That(n == 4 && err == nil && string(b) == "\x00end", "pread: %d, %v, %q", n, err, b)
	_, err = f.ReadAt(b, 1<<21)
	check.Equal(err, io.EOF, "read behind the end")
	from, err := os.Open("big")
	check.Nil(err, "open")
	copied, err := io.Copy(f, from) // copy_file_range
	check.That(copied == int64(len(big)) && err == nil, "copy: %d, %v", copied, err)
	at, err := f.Seek(0, io.SeekCurrent)
	check.That(at == int64(len(big)) && err == nil, "offset behind a copy: %d, %v", at, err)
	from.Close()
	f.Close()
	_, err = os.OpenFile("a", os.O_CREATE|os.O_EXCL, 0o600)
	check.That(errors.Is(err, fs.ErrExist), "O_EXCL: %v", err)
	_, err = os.ReadFile("absent")
	check.That(errors.Is(err, fs.ErrNotExist), "absent: %v", err)
}

// names: creating, renaming, linking, removing.
func names() {
	check.Nil(os.MkdirAll("a/b/c", 0o755), "mkdir")
	check.Nil(os.WriteFile("a/f", []byte("x"), 0o644), "write")
	check.Nil(os.Link("a/f", "a/b/g"), "link")
	st, err := os.Stat("a/f")
	check.Nil(err, "stat")
	check.Equal(st.Sys().(*syscall.Stat_t).Nlink, 2, "links")
	check.Nil(os.Symlink("b/g", "a/l"), "symlink")
	text, err := os.Readlink("a/l")
	check.That(text == "b/g" && err == nil, "readlink: %q, %v", text, err)
	check.Equal(content("a/l"), "x", "through a link")
	st, err = os.Lstat("a/l")
	check.That(err == nil && st.Mode()&fs.ModeSymlink != 0, "lstat: %v", err)
	check.Nil(os.Rename("a/f", "a/b/c/f"), "rename")
	check.Nil(os.Rename("a/b/c/f", "a/l"), "rename over a link")
	check.Equal(content("a/l"), "x", "what was moved over a link")
	check.That(errors.Is(os.Rename("a", "a/b/x"), syscall.EINVAL), "a folder into itself")
	check.That(errors.Is(os.Remove("a"), syscall.ENOTEMPTY), "a folder that is not empty")
	check.That(errors.Is(syscall.Rmdir("a/l"), syscall.ENOTDIR), "rmdir of a file")
	check.That(errors.Is(syscall.Unlink("a"), syscall.EISDIR), "unlink of a folder")
	check.Nil(os.Symlink("loop", "loop"), "symlink")
	_, err = os.Stat("loop")
	check.That(errors.Is(err, syscall.ELOOP), "a loop: %v", err)
	_, err = os.Stat(strings.Repeat("n", 256))
	check.That(errors.Is(err, syscall.ENAMETOOLONG), "a long name: %v", err)
	f, err := os.Open("a/b/g")
	check.Nil(err, "open")
	check.Nil(os.RemoveAll("a"), "remove all")
	b, err := io.ReadAll(f)
	check.That(string(b) == "x" && err == nil, "removed but open: %q, %v", b, err)
	f.Close()
	root, err := os.OpenRoot(".")
	check.Nil(err, "OpenRoot")
	check.Nil(root.Mkdir("in", 0o755), "mkdir in a root")
	_, err = root.Open("../contents")
	check.That(err != nil, "a root can be left")
	root.Close()
}

// attributes: modes, times, owners, file systems.
func attributes() {
	old := syscall.Umask(0o027)
	check.Nil(os.WriteFile("f", nil, 0o666), "write")
	check.Equal(syscall.Umask(old), 0o027, "umask")
	mode := func() fs.FileMode {
		st, err := os.Stat("f")
		check.Nil(err, "stat")
		return st.Mode()
	}
	check.Equal(mode(), 0o640, "mode less umask")
	check.Nil(os.Chmod("f", 0o751), "chmod")
	check.Equal(mode(), 0o751, "mode")
	f, err := os.OpenFile("f", os.O_RDWR, 0)
	check.Nil(err, "open")
	check.Nil(f.Chmod(0o600), "fchmod")
	check.Equal(mode(), 0o600, "mode by fchmod")
	when := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	check.Nil(os.Chtimes("f", time.Time{}, when), "chtimes")
	st, err := f.Stat()
	check.Nil(err, "fstat")
	check.That(st.ModTime().Equal(when), "time %v", st.ModTime())
	check.Nil(syscall.Futimes(int(f.Fd()), []syscall.Timeval{{Sec: 5}, {Sec: 6, Usec: 7}}), "futimes")
	st, _ = f.Stat()
	check.Equal(st.ModTime().UnixMicro(), 6_000_007, "time by futimes")
	check.Nil(os.Chown("f", os.Getuid(), -1), "chown")
	check.Nil(f.Chown(-1, os.Getgid()), "fchown")
	check.Nil(os.Lchown("f", -1, -1), "lchown")
	check.Equal(syscall.Access("f", 2), nil, "access")
	var usage, again syscall.Statfs_t
	check.Nil(syscall.Statfs(".", &usage), "statfs")
	check.Nil(syscall.Fstatfs(int(f.Fd()), &again), "fstatfs")
	check.That(usage.Type == again.Type && usage.Namelen == 255, "statfs: %+v, %+v", usage, again)
	var x [256]byte
	empty := []byte{0}
	_, _, e := syscall.Syscall6(332, f.Fd(), uintptr(unsafe.Pointer(&empty[0])), 0x1000, 0x7ff, uintptr(unsafe.Pointer(&x)), 0)
	check.That(e == 0 && *(*uint16)(unsafe.Pointer(&x[28])) == syscall.S_IFREG|0o600, "statx: %v, % x", e, x[:32])
	f.Close()
}

// listing: reading folders with many names.
func listing() {
	many := 100_000
	if len(os.Args) > 1 {
		many, _ = strconv.Atoi(os.Args[1])
	}
	for i := range many {
		fd, err := syscall.Open(fmt.Sprintf("%05d", i), syscall.O_CREAT|syscall.O_WRONLY, 0o600)
		check.Nil(err, "create")
		syscall.Close(fd)
	}
	entries, err := os.ReadDir(".")
	check.That(len(entries) == many && err == nil, "%d entries, %v", len(entries), err)
	d, err := os.Open(".")
	check.Nil(err, "open")
	var got []string
	for {
		names, err := d.Readdirnames(1000)
		got = append(got, names...)
		if err != nil {
			break
		}
		os.Remove(names[0])
	}
	slices.Sort(got)
	check.That(len(got) == many && len(slices.Compact(got)) == many, "%d names while some go", len(got))
	d.Close()
	check.Nil(os.RemoveAll("../listing"), "remove")
	check.Nil(os.Mkdir("../listing", 0o755), "and make again")
	_, err = os.ReadDir(".")
	check.That(errors.Is(err, fs.ErrNotExist), "a folder that has been removed: %v", err)
}

// descriptors: dup, fcntl, and the lowest number.
func descriptors() {
	a, err := syscall.Open("f", syscall.O_RDWR|syscall.O_CREAT, 0o600)
	check.Nil(err, "open")
	check.That(a >= 3, "descriptor %d", a)
	b, err := syscall.Dup(a)
	check.Nil(err, "dup")
	syscall.Write(a, []byte("one"))
	syscall.Write(b, []byte("two"))
	check.Equal(content("f"), "onetwo", "two descriptors")
	check.Nil(syscall.Dup3(a, 200, syscall.O_CLOEXEC), "dup3")
	name, err := os.Readlink("/proc/self/fd/200")
	here, _ := os.Getwd()
	check.That(name == here+"/f" && err == nil, "/proc/self/fd: %q, %v", name, err)
	flags, _, e := syscall.Syscall(syscall.SYS_FCNTL, 200, syscall.F_GETFL, 0)
	check.That(e == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR, "F_GETFL: %x, %v", flags, e)
	syscall.Close(a)
	again, _ := syscall.Open("f", syscall.O_RDONLY, 0)
	check.Equal(again, a, "the lowest number")
	_, err = syscall.Write(again, []byte("x"))
	check.Equal(err, error(syscall.EBADF), "write to what is open for reading")
	for _, fd := range []int{b, 200, again} {
		check.Nil(syscall.Close(fd), "close")
	}
	check.Equal(syscall.Close(again), error(syscall.EBADF), "close twice")
	_, err = syscall.Seek(9999, 0, 0)
	check.Equal(err, error(syscall.EBADF), "what is not open")
	_, _, e = syscall.Syscall(600, 0, 0, 0)
	check.Equal(e, syscall.ENOSYS, "a call that does not exist")
}

// locks: flock(2), and record locks of fcntl(2).
func locks() {
	a, err := os.Create("f")
	check.Nil(err, "create")
	b, err := os.Open("f")
	check.Nil(err, "open")
	check.Nil(syscall.Flock(int(a.Fd()), syscall.LOCK_EX), "flock")
	err = syscall.Flock(int(b.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	check.Equal(err, error(syscall.EAGAIN), "flock of another")
	waited := make(chan error)
	go func() { waited <- syscall.Flock(int(b.Fd()), syscall.LOCK_SH) }()
	check.Nil(syscall.Flock(int(a.Fd()), syscall.LOCK_UN), "unlock")
	check.Nil(<-waited, "flock that waits")
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 10}
	check.Nil(syscall.FcntlFlock(a.Fd(), syscall.F_SETLK, &l), "F_SETLK")
	l = syscall.Flock_t{Type: syscall.F_WRLCK, Start: 5, Len: 1}
	const ofdGetLk = 36
	check.Nil(syscall.FcntlFlock(b.Fd(), ofdGetLk, &l), "F_OFD_GETLK")
	check.That(l.Type == syscall.F_WRLCK && l.Start == 0 && l.Len == 10, "who locks: %+v", l)
	a.Close()
	b.Close()
}

// mapping: read-only and private mappings of files, and anonymous memory.
func mapping() {
	check.Nil(os.WriteFile("f", bytes.Repeat([]byte("page"), 3000), 0o600), "write")
	f, err := os.Open("f")
	check.Nil(err, "open")
	m, err := syscall.Mmap(int(f.Fd()), 4096, 8192, syscall.PROT_READ, syscall.MAP_PRIVATE)
	check.Nil(err, "mmap")
	check.That(string(m[:4]) == "page" && m[12000-4096] == 0, "what is mapped: %q", m[:8])
	check.Nil(syscall.Munmap(m), "munmap")
	m, err = syscall.Mmap(int(f.Fd()), 0, 12000, syscall.PROT_READ, syscall.MAP_SHARED)
	check.Nil(err, "a shared mapping for reading")
	check.Nil(syscall.Munmap(m), "munmap")
	_, err = syscall.Mmap(int(f.Fd()), 1, 10, syscall.PROT_READ, syscall.MAP_PRIVATE)
	check.Equal(err, error(syscall.EINVAL), "an offset that is no page")
	_, err = syscall.Mmap(int(f.Fd()), 0, 10, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check.Equal(err, error(syscall.EACCES), "a shared mapping for writing")
	f.Close()
	m, err = syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	check.Nil(err, "memory")
	m[1<<20-1] = 1
	check.Nil(syscall.Munmap(m), "munmap")
}

// pipes: pipes, and named pipes.
func pipes() {
	r, w, err := os.Pipe()
	check.Nil(err, "pipe")
	check.Nil(r.SetReadDeadline(time.Now().Add(time.Millisecond)), "a deadline")
	_, err = r.Read(make([]byte, 1))
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "deadline: %v", err)
	r.SetReadDeadline(time.Time{})
	go func() {
		w.Write(bytes.Repeat([]byte("x"), 200_000))
		w.Close()
	}()
	b, err := io.ReadAll(r)
	check.That(len(b) == 200_000 && err == nil, "through a pipe: %d, %v", len(b), err)
	r.Close()
	check.Nil(syscall.Mkfifo("fifo", 0o600), "mkfifo")
	go func() { os.WriteFile("fifo", []byte("named"), 0) }()
	check.Equal(content("fifo"), "named", "through a FIFO")
}

// vectors: calls with several buffers, some on the stack.
func vectors() {
	f, err := os.Create("f")
	check.Nil(err, "create")
	a, b := []byte("one"), []byte("two")
	v := []syscall.Iovec{{Base: &a[0], Len: 3}, {Base: &b[0], Len: 3}}
	n, _, e := syscall.Syscall(syscall.SYS_WRITEV, f.Fd(), uintptr(unsafe.Pointer(&v[0])), 2)
	check.That(n == 6 && e == 0, "writev: %d, %v", n, e)
	n, _, e = syscall.Syscall6(syscall.SYS_PWRITEV, f.Fd(), uintptr(unsafe.Pointer(&v[0])), 2, 3, 0, 0)
	check.That(n == 6 && e == 0 && content("f") == "oneonetwo", "pwritev: %d, %v", n, e)
	n, _, e = syscall.Syscall6(syscall.SYS_PREADV, f.Fd(), uintptr(unsafe.Pointer(&v[0])), 2, 1, 0, 0)
	check.That(n == 6 && e == 0 && string(a)+string(b) == "neonet", "preadv: %d, %v, %s%s", n, e, a, b)
	f.Close()
}

// devices: devices of /dev, and the standard streams.
func devices() {
	f, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	check.Nil(err, "open")
	n, err := f.Write([]byte("x"))
	check.That(n == 1 && err == nil, "/dev/null: %d, %v", n, err)
	_, err = f.Read(make([]byte, 1))
	check.Equal(err, io.EOF, "/dev/null")
	at, err := f.Seek(5, io.SeekStart)
	check.That(at == 0 && err == nil, "seek of /dev/null: %d, %v", at, err)
	f.Close()
	f, err = os.Open("/dev/zero")
	check.Nil(err, "open")
	b := []byte{1, 2, 3}
	io.ReadFull(f, b)
	check.Equal(string(b), "\x00\x00\x00", "/dev/zero")
	f.Close()
	err = os.WriteFile("/dev/full", []byte("x"), 0)
	check.That(errors.Is(err, syscall.ENOSPC), "/dev/full: %v", err)
	st, err := os.Stat("/dev/null")
	check.That(err == nil && st.Mode()&fs.ModeCharDevice != 0 && st.Sys().(*syscall.Stat_t).Rdev == 0x103, "/dev/null is %v", st)
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, 1, syscall.TCGETS, uintptr(unsafe.Pointer(new([64]byte))))
	check.Equal(e, syscall.ENOTTY, "no terminal")
}

// stack: calls with buffers on a goroutine's stack, which grows during the call.
func stack() {
	done := make(chan bool)
	go func() {
		var small [3]byte
		fd, err := syscall.Open("f", syscall.O_RDWR|syscall.O_CREAT, 0o600)
		check.Nil(err, "open")
		syscall.Write(fd, []byte{1, 2, 3})
		_, err = syscall.Pread(fd, small[:], 0)
		check.That(err == nil && small == [3]byte{1, 2, 3}, "pread to the stack: %v, %v", small, err)
		var st syscall.Stat_t
		check.Nil(syscall.Fstat(fd, &st), "fstat")
		check.Equal(st.Size, 3, "size on the stack")
		syscall.Close(fd)
		close(done)
	}()
	<-done
}

// tree: the rules of io/fs, by testing/fstest.
func tree() {
	for _, name := range []string{"a/b/c", "a/d", "e"} {
		check.Nil(os.MkdirAll(filepath.Dir(name), 0o755), "mkdir")
		check.Nil(os.WriteFile(name, []byte(name), 0o644), "write")
	}
	check.Nil(fstest.TestFS(os.DirFS("."), "a/b/c", "a/d", "e"), "TestFS")
}
