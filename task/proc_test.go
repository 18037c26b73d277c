package task

import (
	"fmt"
	"strings"
	"testing"

	"loam/abi/linux"
)

// read returns the content of a file, or the error as a number.
func (u *user) read(path string) string {
	const buffer, size = dataAt + 0x1000, 0x2000
	fd := u.call(linux.SYS_OPEN, u.text(dataAt+0xc00, path), linux.O_RDONLY|linux.O_CLOEXEC)
	if fd < 0 {
		return fmt.Sprint(linux.Errno(-fd))
	}
	var all []byte
	for {
		n := u.call(linux.SYS_READ, uint64(fd), buffer, size)
		if n < 0 {
			all = fmt.Append(all, linux.Errno(-n))
		}
		if n <= 0 {
			break
		}
		b := make([]byte, n)
		u.access(buffer, b, 0, u.space.Read)
		all = append(all, b...)
	}
	u.call(linux.SYS_CLOSE, uint64(fd))
	return string(all)
}

// link returns the target of a symbolic link, or the error.
func (u *user) link(path string) string {
	const buffer, size = dataAt + 0x1000, 0x1000
	n := u.call(linux.SYS_READLINK, u.text(dataAt+0xc00, path), buffer, size)
	if n < 0 {
		return fmt.Sprint(linux.Errno(-n))
	}
	b := make([]byte, n)
	u.access(buffer, b, 0, u.space.Read)
	return string(b)
}

// list returns the names in a directory.
func (u *user) list(path string) (names []string) {
	const buffer, size = dataAt + 0x1000, 0x2000
	fd := u.call(linux.SYS_OPEN, u.text(dataAt+0xc00, path), linux.O_RDONLY|linux.O_DIRECTORY)
	if fd < 0 {
		return []string{fmt.Sprint(linux.Errno(-fd))}
	}
	for {
		n := u.call(linux.SYS_GETDENTS64, uint64(fd), buffer, size)
		if n <= 0 {
			break
		}
		b := make([]byte, n)
		u.access(buffer, b, 0, u.space.Read)
		for len(b) > 0 {
			name, _, _ := strings.Cut(string(b[19:]), "\x00")
			names = append(names, name)
			b = b[int(b[16])|int(b[17])<<8:]
		}
	}
	u.call(linux.SYS_CLOSE, uint64(fd))
	return names
}

// same reports a text that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// /proc has a directory for each process, which shows the process and disappears with it. The link self leads to the caller's directory.
func TestProc(t *testing.T) {
	run(t, func(u *user) {
		same(t, "self", u.link("/proc/self"), "2")
		same(t, "thread-self", u.link("/proc/thread-self"), "2/task/2")
		same(t, "cmdline", u.read("/proc/self/cmdline"), "zero\x00one\x00")
		same(t, "comm", u.read("/proc/2/comm"), "0\n")
		same(t, "exe", u.link("/proc/self/exe"), "/0")
		same(t, "cwd", u.link("/proc/self/cwd"), "/")
		same(t, "mounts", u.read("/proc/2/task/2/mounts"), "mounts\n")
		if s := u.read("/proc/self/stat"); !strings.HasPrefix(s, "2 (0) R 1 1 1 0 -1 ") || len(strings.Fields(s)) != 52 {
			t.Errorf("stat: %q", s)
		}
		if s := u.read("/proc/self/maps"); !strings.Contains(s, "r-xp") || !strings.Contains(s, "[stack]") || !strings.Contains(s, " /0\n") {
			t.Errorf("maps: %q", s)
		}
		is(t, "open", u.call(linux.SYS_OPEN, u.text(dataAt, "/file"), linux.O_CREAT|linux.O_WRONLY, 0o600), 0)
		is(t, "pipe", u.call(linux.SYS_PIPE2, dataAt+8, linux.O_CLOEXEC), 0)
		child := u.fork(1)
		dir := fmt.Sprintf("/proc/%d", child)
		same(t, "names", fmt.Sprint(u.list("/proc")), fmt.Sprintf("[. .. 1 2 %d self thread-self]", child))
		same(t, "descriptors", fmt.Sprint(u.list(dir+"/fd")), "[. .. 0 1 2]")
		same(t, "a file", u.link(dir+"/fd/0"), "/file")
		same(t, "no descriptor", u.link(dir+"/fd/9"), "no such file or directory")
		if a, b := u.link(dir+"/fd/1"), u.link("/proc/self/fd/1"); a != b || !strings.HasPrefix(a, "pipe:[") {
			t.Errorf("a pipe: %q and %q", a, b)
		}
		is(t, "stat through the link", u.call(linux.SYS_STAT, u.text(dataAt, dir+"/fd/1"), dataAt+0x1000), 0)
		if mode := u.load32(dataAt + 0x1000 + 24); mode&linux.S_IFMT != linux.S_IFIFO {
			t.Errorf("mode %o", mode)
		}
		held := u.call(linux.SYS_OPEN, u.text(dataAt, dir+"/status"), linux.O_RDONLY)
		u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL)
		is(t, "waitid", u.call(linux.SYS_WAITID, linux.P_PID, uint64(child), 0, linux.WEXITED|linux.WNOWAIT, 0), 0)
		if s := u.read(dir + "/status"); !strings.Contains(s, "State:\tZ (zombie)\n") || strings.Contains(s, "VmSize") {
			t.Errorf("a zombie: %q", s)
		}
		same(t, "its arguments", u.read(dir+"/cmdline"), "")
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		same(t, "gone", u.read(dir+"/stat"), "no such file or directory")
		is(t, "an open file", u.call(linux.SYS_READ, uint64(held), dataAt, 10), failed(linux.ESRCH))
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// A user does not see the memory, environment and descriptors of another. Only the process itself may write its file comm.
func TestProcPermissions(t *testing.T) {
	run(t, func(u *user) {
		is(t, "name", u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self/comm"), linux.O_WRONLY), 0)
		is(t, "write", u.call(linux.SYS_WRITE, 0, u.text(dataAt, "renamed"), 7), 7)
		same(t, "comm", u.read("/proc/self/comm"), "renamed\n")
		child := u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
		exit(u, 0)
	}, func(u *user) {
		denied := linux.EACCES.Error()
		u.store32(dataAt+0x40, 77)
		is(t, "its own memory", u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/self/mem"), linux.O_RDWR), 1)
		is(t, "pread", u.call(linux.SYS_PREAD64, 1, dataAt+0x80, 4, dataAt+0x40), 4)
		is(t, "the word", int64(u.load32(dataAt+0x80)), 77)
		is(t, "no memory", u.call(linux.SYS_PREAD64, 1, dataAt+0x80, 4, 0x1000), failed(linux.EIO))
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		for _, name := range []string{"environ", "mem", "maps", "auxv", "io", "smaps"} {
			same(t, name, u.read("/proc/2/"+name), denied)
		}
		same(t, "exe", u.link("/proc/2/exe"), denied)
		same(t, "fd", fmt.Sprint(u.list("/proc/2/fd")), "["+denied+"]")
		if s := u.read("/proc/2/status"); !strings.Contains(s, "Uid:\t0\t0\t0\t0\n") {
			t.Errorf("status: %q", s)
		}
		is(t, "comm", u.call(linux.SYS_OPEN, u.text(dataAt, "/proc/2/comm"), linux.O_WRONLY), failed(linux.EACCES))
		exit(u, 0)
	})
}
