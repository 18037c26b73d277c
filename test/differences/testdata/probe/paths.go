package main

import (
	"fmt"
	"os"
	"syscall"
)

const cwd = ^uintptr(99) // AT_FDCWD

var paths = []probe{
	{"renameat2 RENAME_NOREPLACE", func() string {
		file("a", nil).Close()
		file("b", nil).Close()
		return outcome(316, cwd, text("a"), cwd, text("b"), 1)
	}},
	{"renameat2 RENAME_EXCHANGE", func() string {
		file("a", []byte("1")).Close()
		file("b", []byte("2")).Close()
		s := outcome(316, cwd, text("a"), cwd, text("b"), 2)
		got, _ := os.ReadFile("a")
		return joined(s, string(got))
	}},
	{"renameat2 RENAME_WHITEOUT", func() string {
		file("white", nil).Close()
		return outcome(316, cwd, text("white"), cwd, text("w"), 4)
	}},
	{"openat2 RESOLVE_BENEATH", func() string {
		h := [3]uint64{0, 0, 8}
		return outcome(437, cwd, text("../x"), at(&h), 24)
	}},
	{"faccessat2 AT_EACCESS", func() string { file("a", nil).Close(); return outcome(439, cwd, text("a"), 4, 0x200) }},
	{"fchmodat2 AT_SYMLINK_NOFOLLOW", func() string { file("a", nil).Close(); return outcome(452, cwd, text("a"), 0o600, 0x100) }},
	{"a loop of symbolic links", func() string {
		fresh("loop")
		os.Symlink("loop", "loop")
		_, err := os.Open("loop")
		return word(err)
	}},
	{"a name of 256 bytes", func() string { _, err := os.Create(fmt.Sprintf("%0256d", 0)); return word(err) }},
	{"a path of 4096 bytes", func() string { _, err := os.Open(fmt.Sprintf("%04096d", 0)); return word(err) }},
	{"mknod of a FIFO", func() string { fresh("fifo"); return word(syscall.Mknod("fifo", syscall.S_IFIFO|0o600, 0)) }},
	{"mknod of a device", func() string { fresh("dev"); return word(syscall.Mknod("dev", syscall.S_IFCHR|0o600, 0x103)) }},
	{"extended attributes", func() string {
		file("a", nil).Close()
		err := syscall.Setxattr("a", "user.x", []byte("v"), 0)
		b := make([]byte, 10)
		n, err2 := syscall.Getxattr("a", "user.x", b)
		return joined(word(err), word(err2), string(b[:max(n, 0)]))
	}},
	{"extended attribute, trusted", func() string { file("a", nil).Close(); return word(syscall.Setxattr("a", "trusted.x", []byte("v"), 0)) }},
	{"utimensat with nanoseconds", func() string {
		file("a", nil).Close()
		t := []syscall.Timespec{{Sec: 5, Nsec: 6}, {Sec: 7, Nsec: 8}}
		err := syscall.UtimesNano("a", t)
		var st syscall.Stat_t
		syscall.Stat("a", &st)
		return joined(word(err), fmt.Sprint(st.Mtim.Nano()))
	}},
	{"link to a folder", func() string { os.Mkdir("d", 0o755); return word(os.Link("d", "d2")) }},
	{"rmdir of a folder that is not empty", func() string {
		os.MkdirAll("d/e", 0o755)
		return word(syscall.Rmdir("d"))
	}},
	{"unlink of a folder", func() string { os.MkdirAll("d", 0o755); return word(syscall.Unlink("d")) }},
	{"a file that is unlinked while it is open", func() string {
		f := file("u", []byte("hello"))
		os.Remove("u")
		b := make([]byte, 5)
		_, err := f.ReadAt(b, 0)
		var st syscall.Stat_t
		syscall.Fstat(int(f.Fd()), &st)
		return joined(word(err), string(b), fmt.Sprint(st.Nlink))
	}},
	{"getcwd of a folder that is removed", func() string {
		was, _ := os.Getwd()
		defer os.Chdir(was)
		os.MkdirAll("gone", 0o755)
		os.Chdir("gone")
		os.Remove(was + "/gone")
		b := make([]byte, 100)
		return outcome(syscall.SYS_GETCWD, at(&b[0]), 100)
	}},
	{"mount", func() string { return word(syscall.Mount("none", "/mnt", "tmpfs", 0, "")) }},
	{"chroot", func() string { return word(syscall.Chroot("/")) }},
	{"umask", func() string {
		old := syscall.Umask(0o77)
		defer syscall.Umask(old)
		os.Remove("um")
		f, _ := os.OpenFile("um", os.O_CREATE|os.O_RDWR, 0o666)
		st, _ := f.Stat()
		return fmt.Sprintf("%o", st.Mode())
	}},
	{"statfs", func() string {
		var s syscall.Statfs_t
		err := syscall.Statfs(".", &s)
		return joined(word(err), fmt.Sprint(s.Bsize, s.Namelen))
	}},
	{"open with O_CREAT|O_DIRECTORY", func() string {
		fresh("od")
		_, err := syscall.Open("od", syscall.O_CREAT|syscall.O_DIRECTORY, 0o644)
		return word(err)
	}},
	{"open_tree", func() string { return outcome(428, cwd, text("."), 1) }},
	{"fsopen", func() string { return outcome(430, text("tmpfs"), 0) }},
	{"swapon", func() string { return outcome(syscall.SYS_SWAPON, text("/x"), 0) }},
}
