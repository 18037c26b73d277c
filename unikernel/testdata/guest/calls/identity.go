package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// capHeader and capSets are the structs that capget(2) fills.
type capHeader struct {
	version uint32
	pid     int32
}

type capSets [2]struct{ effective, permitted, inheritable uint32 }

// identity checks user and group IDs: the program may set those that it has, and without privilege no others.
func identity() {
	uid, gid := os.Getuid(), os.Getgid()
	check.Nil(syscall.Setuid(uid), "setuid")
	check.Nil(syscall.Setgid(gid), "setgid")
	check.Nil(syscall.Setreuid(-1, uid), "setreuid")
	check.Nil(syscall.Setresuid(uid, -1, uid), "setresuid")
	check.Nil(syscall.Setresgid(gid, gid, -1), "setresgid")
	before, err := call(syscall.SYS_SETFSUID, uintptr(uid))
	check.That(err == nil && int(before) == uid, "setfsuid: %d, %v", before, err)

	h, sets := capHeader{version: 0x20080522}, capSets{}
	_, err = call(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&sets)))
	check.Nil(err, "capget")
	_, err = call(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&sets)))
	check.Nil(err, "capset to what there is")
	h.version = 1
	_, err = call(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&h)), 0)
	check.That(err == nil && h.version == 0x20080522, "the version: %#x, %v", h.version, err)

	const setDumpable, getDumpable, noNewPrivs, unknown = 4, 3, 38, 9999
	_, err = call(syscall.SYS_PRCTL, setDumpable, 1)
	check.Nil(err, "dumpable")
	n, err := call(syscall.SYS_PRCTL, getDumpable)
	check.That(n == 1 && err == nil, "dumpable: %d, %v", n, err)
	_, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0, 0, 0)
	check.Equal(e, 0, "no new privileges")
	_, err = call(syscall.SYS_PRCTL, unknown)
	check.Equal(err, error(syscall.EINVAL), "an unknown prctl")

	nice, err := call(syscall.SYS_GETPRIORITY)
	check.Nil(err, "getpriority")
	check.Nil(syscall.Setpriority(syscall.PRIO_PROCESS, 0, 20-int(nice)), "setpriority to what it is")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var cpus [16]uint64
	_, err = call(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(cpus), uintptr(unsafe.Pointer(&cpus)))
	check.Nil(err, "sched_getaffinity")
	_, err = call(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(cpus), uintptr(unsafe.Pointer(&cpus)))
	check.Nil(err, "sched_setaffinity")
	_, err = call(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(cpus), uintptr(unsafe.Pointer(&[16]uint64{})))
	check.Equal(err, error(syscall.EINVAL), "no CPU at all")
	if unprivileged() {
		check.Equal(syscall.Setuid(uid+1), error(syscall.EPERM), "setuid to another")
		check.Equal(syscall.Setresgid(-1, gid+1, -1), error(syscall.EPERM), "setresgid to another")
		check.Equal(syscall.Setgroups([]int{gid}), error(syscall.EPERM), "setgroups")
	}
}

// unprivileged reports whether the program may not change its identity. This holds for every user but root, and for all
// users in a Loam where the program cannot start others.
func unprivileged() bool {
	return os.Getuid() != 0 || exec.Command("/proc/self/exe", "nothing").Start() != nil
}
