package task

import (
	"fmt"
	"testing"

	"loam/abi/linux"
)

// An open file of /proc/PID gives no access to the memory of a program that the process starts later: the program may be a
// set-user-ID program of root.
func TestOpenMemoryEndsWithProgram(t *testing.T) {
	const text, buffer, victim, size = dataAt + 0x600, dataAt + 0x800, dataAt + 0x700, 0x200
	files := []string{"mem", "maps", "smaps", "smaps_rollup", "environ", "pagemap"}
	var toChild, toParent [2]uint64
	wait := func(u *user, pipe [2]uint64) {
		is(t, "wait for the other", u.call(linux.SYS_READ, pipe[0], buffer, 1), 1)
	}
	wake := func(u *user, pipe [2]uint64) { is(t, "wake the other", u.call(linux.SYS_WRITE, pipe[1], buffer, 1), 1) }
	run(t, func(u *user) {
		is(t, "chmod", u.call(linux.SYS_CHMOD, u.text(text, "/1"), 0o4755), 0)
		is(t, "as another user", u.call(linux.SYS_SETRESUID, 1000, 1000, 1000), 0)
		is(t, "PR_SET_DUMPABLE", u.call(linux.SYS_PRCTL, linux.PR_SET_DUMPABLE, 1), 0)
		toChild[0], toChild[1] = pair(u, linux.SYS_PIPE)
		toParent[0], toParent[1] = pair(u, linux.SYS_PIPE)
		child := u.fork(2)
		wait(u, toParent)
		opened := map[string]uint64{}
		for _, name := range append(files, "auxv") {
			access := linux.O_RDONLY
			if name == "mem" {
				access = linux.O_RDWR
			}
			fd := u.call(linux.SYS_OPEN, u.text(text, fmt.Sprintf("/proc/%d/%s", child, name)), uint64(access))
			if fd < 0 {
				t.Fatalf("open of %s: %d", name, fd)
			}
			opened[name] = uint64(fd)
		}
		u.words(buffer, 99)
		is(t, "write to the old program", u.call(linux.SYS_PWRITE64, opened["mem"], buffer, 4, victim), 4)
		wake(u, toChild)
		wait(u, toParent)
		for _, name := range files {
			want := int64(0)
			if name == "smaps_rollup" {
				want = failed(linux.ESRCH)
			}
			is(t, "read of "+name, u.call(linux.SYS_PREAD64, opened[name], buffer, size, 0), want)
		}
		var query [linux.SizeofProcmapQuery]byte
		(&linux.ProcmapQuery{Size: uint64(len(query)), QueryFlags: linux.PROCMAP_QUERY_COVERING_OR_NEXT_VMA}).Put(query[:])
		u.store(buffer, query[:])
		is(t, "PROCMAP_QUERY", u.call(linux.SYS_IOCTL, opened["maps"], linux.PROCMAP_QUERY, buffer), failed(linux.ESRCH))
		if n := u.call(linux.SYS_PREAD64, opened["auxv"], buffer, size, 0); n <= 0 {
			t.Errorf("the auxiliary vector of the old program: %d", n)
		}
		is(t, "read of memory", u.call(linux.SYS_PREAD64, opened["mem"], buffer, 4, victim), 0)
		is(t, "write to the new program", u.call(linux.SYS_PWRITE64, opened["mem"], buffer, 4, victim), 0)
		is(t, "open again", u.call(linux.SYS_OPEN, u.text(text, fmt.Sprintf("/proc/%d/mem", child)), linux.O_RDWR), failed(linux.EACCES))
		wake(u, toChild)
		is(t, "wait4", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		for _, name := range files {
			if n := u.call(linux.SYS_PREAD64, opened[name], buffer, size, 0); n > 0 {
				t.Errorf("%s after the end: %d bytes", name, n)
			}
		}
		exit(u, 0)
	}, func(u *user) {
		is(t, "user of the new program", u.call(linux.SYS_GETEUID), 0)
		u.words(victim, 7)
		wake(u, toParent)
		wait(u, toChild)
		is(t, "memory of the new program", int64(u.load32(victim)), 7)
		exit(u, 0)
	}, func(u *user) {
		u.words(victim, 5)
		wake(u, toParent)
		wait(u, toChild)
		is(t, "memory of the old program", int64(u.load32(victim)), 99)
		u.call(linux.SYS_EXECVE, u.text(text, "/1"), 0, 0)
		t.Error("execve has returned")
	})
}
