package task

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// A process that gives up user 0 loses its rights on files and processes, and cannot get them back.
func TestLoseRights(t *testing.T) {
	run(t, func(u *user) {
		const secret, nobody = dataAt + 64, 1000
		fd := u.call(linux.SYS_OPEN, u.text(secret, "/secret"), linux.O_CREAT|linux.O_RDWR, 0o600)
		is(t, "close", u.call(linux.SYS_CLOSE, uint64(fd)), 0)
		child := u.fork(1)
		is(t, "setgroups", u.call(linux.SYS_SETGROUPS, 1, u.words(dataAt+128, 7)), 0)
		is(t, "setgid", u.call(linux.SYS_SETGID, nobody), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, nobody), 0)
		is(t, "getuid", u.call(linux.SYS_GETUID), nobody)
		is(t, "geteuid", u.call(linux.SYS_GETEUID), nobody)
		is(t, "getgroups", u.call(linux.SYS_GETGROUPS, 4, dataAt+128), 1)
		is(t, "the group", int64(u.load32(dataAt+128)), 7)
		is(t, "back", u.call(linux.SYS_SETUID, 0), failed(linux.EPERM))
		is(t, "setgroups", u.call(linux.SYS_SETGROUPS, 0, 0), failed(linux.EPERM))
		is(t, "open", u.call(linux.SYS_OPEN, secret, linux.O_RDONLY), failed(linux.EACCES))
		is(t, "chown", u.call(linux.SYS_CHOWN, secret, nobody, nobody), failed(linux.EPERM))
		is(t, "chroot", u.call(linux.SYS_CHROOT, u.text(dataAt, "/")), failed(linux.EPERM))
		is(t, "kill", u.call(linux.SYS_KILL, uint64(child), linux.SIGTERM), failed(linux.EPERM))
		is(t, "probe", u.call(linux.SYS_KILL, uint64(child), 0), failed(linux.EPERM))
		is(t, "tgkill", u.call(linux.SYS_TGKILL, uint64(child), uint64(child), linux.SIGTERM), failed(linux.EPERM))
		is(t, "SIGCONT in the session", u.call(linux.SYS_KILL, uint64(child), linux.SIGCONT), 0)
		is(t, "prlimit", u.call(linux.SYS_PRLIMIT64, uint64(child), linux.RLIMIT_CORE, 0, dataAt), failed(linux.EPERM))
		is(t, "dumpable", u.call(linux.SYS_PRCTL, linux.PR_GET_DUMPABLE), 0)
		own := u.fork(2)
		is(t, "kill of one's own", u.call(linux.SYS_KILL, uint64(own), linux.SIGKILL), 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(own), 0, 0, 0), own)
		exit(u, 0)
	}, func(u *user) {
		u.call(linux.SYS_PAUSE)
	}, func(u *user) {
		is(t, "inherited", u.call(linux.SYS_GETUID), 1000)
		u.call(linux.SYS_PAUSE)
	})
}

// words stores 32-bit words and returns their address.
func (u *user) words(addr uint64, all ...uint32) uint64 {
	var b []byte
	for _, w := range all {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	u.store(addr, b)
	return addr
}

// A set-user-ID file changes the effective user ID, and AT_SECURE is set. PR_SET_NO_NEW_PRIVS prevents it.
func TestSetUserIDFile(t *testing.T) {
	run(t, func(u *user) {
		is(t, "chmod", u.call(linux.SYS_CHMOD, u.text(dataAt, "/1"), 0o4755), 0)
		is(t, "as root", u.call(linux.SYS_SETRESUID, 1000, 1000, 1000), 0)
		child := u.fork(2)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt+64, 0, 0), child)
		is(t, "effective user 0, secure", int64(u.load32(dataAt+64)), 1<<8)
		is(t, "no new privileges", u.call(linux.SYS_PRCTL, linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0)
		u.call(linux.SYS_EXECVE, dataAt, 0, 0)
	}, func(u *user) {
		is(t, "real user", u.call(linux.SYS_GETUID), 1000)
		euid := u.call(linux.SYS_GETEUID)
		if secure := u.auxv(23); secure != uint64(flag(euid == 0)) {
			t.Errorf("AT_SECURE is %d for user %d", secure, euid)
		}
		exit(u, uint64(flag(euid == 0)))
	}, func(u *user) {
		u.call(linux.SYS_EXECVE, dataAt, 0, 0)
		t.Error("execve has returned")
	})
}

// auxv returns an entry of the auxiliary vector with the given type, from the stack of a program that has just
// started.
func (u *user) auxv(key uint64) uint64 {
	at := u.frame.SP
	word := func() (v uint64) {
		v = uint64(u.load32(at)) | uint64(u.load32(at+4))<<32
		at += 8
		return v
	}
	at += 8 * (word() + 1) // skips argc, the arguments and their terminating 0
	for word() != 0 {
	}
	for {
		k, v := word(), word()
		if k == key || k == 0 {
			return v
		}
	}
}

// capget returns the capabilities of process 1, of another process, also if it is a zombie, but not of one that does not exist.
func TestCapabilitiesOfOthers(t *testing.T) {
	const header, data = dataAt, dataAt + 64
	run(t, func(u *user) {
		get := func(pid int64) int64 {
			u.words(header, linux.CAPABILITY_VERSION_3, uint32(pid))
			u.words(data, 0, 0, 0, 0, 0, 0)
			return u.call(linux.SYS_CAPGET, header, data)
		}
		child := u.fork(1)
		for what, pid := range map[string]int64{"process 1": 1, "a child": child} {
			is(t, what, get(pid), 0)
			is(t, what+": effective", int64(u.load32(data)), 0xffffffff)
		}
		u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL)
		is(t, "waitid", u.call(linux.SYS_WAITID, linux.P_PID, uint64(child), 0, linux.WEXITED|linux.WNOWAIT, 0), 0)
		is(t, "a zombie", get(child), 0)
		is(t, "its effective", int64(u.load32(data)), 0xffffffff)
		is(t, "none", get(999), failed(linux.ESRCH))
		exit(u, 0)
	}, func(u *user) { u.call(linux.SYS_PAUSE) })
}

// capset gives up capabilities; PR_SET_KEEPCAPS keeps the permitted ones over setuid; the bounding set only shrinks.
func TestCapabilities(t *testing.T) {
	const header, data = dataAt, dataAt + 64
	run(t, func(u *user) {
		get := func() linux.CapData {
			u.words(header, linux.CAPABILITY_VERSION_3, 0)
			is(t, "capget", u.call(linux.SYS_CAPGET, header, data), 0)
			b := make([]byte, linux.SizeofCapData)
			u.access(data, b, 0, u.space.Read)
			return linux.ParseCapData(b)
		}
		all := get()
		if all.Effective != 1<<41-1 || all.Permitted != all.Effective || all.Inheritable != 0 {
			t.Errorf("of user 0: %x", all)
		}
		is(t, "keep", u.call(linux.SYS_PRCTL, linux.PR_SET_KEEPCAPS, 1), 0)
		is(t, "drop", u.call(linux.SYS_PRCTL, linux.PR_CAPBSET_DROP, linux.CAP_KILL), 0)
		is(t, "read", u.call(linux.SYS_PRCTL, linux.PR_CAPBSET_READ, linux.CAP_KILL), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, 5), 0)
		if c := get(); c.Effective != 0 || c.Permitted != all.Permitted {
			t.Errorf("after setuid: %x", c)
		}
		u.words(data, 1<<linux.CAP_SETGID, 1<<linux.CAP_SETGID, 0, 0, 0, 0)
		is(t, "capset", u.call(linux.SYS_CAPSET, header, data), 0)
		is(t, "setgid", u.call(linux.SYS_SETGID, 9), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, 9), failed(linux.EPERM))
		u.words(data, ^uint32(0), ^uint32(0), 0, 0, 0, 0)
		is(t, "capset", u.call(linux.SYS_CAPSET, header, data), failed(linux.EPERM))
		u.words(header, 1, 0)
		is(t, "unknown version", u.call(linux.SYS_CAPGET, header, data), failed(linux.EINVAL))
		is(t, "the known one", int64(u.load32(header)), linux.CAPABILITY_VERSION_3)
		exit(u, 0)
	})
}

// RLIMIT_MEMLOCK, 8 MiB by default, does not limit root, not even in the first process of the machine.
func TestRootLocksAnyMemory(t *testing.T) {
	run(t, func(u *user) {
		const size, nobody = 16 << 20, 65534
		at := uint64(u.call(linux.SYS_MMAP, 0, size, linux.PROT_NONE, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, 1<<64-1, 0))
		is(t, "mlock2", u.call(linux.SYS_MLOCK2, at, size, mem.MlockOnFault), 0)
		is(t, "munlock", u.call(linux.SYS_MUNLOCK, at, size), 0)
		is(t, "setuid", u.call(linux.SYS_SETUID, nobody), 0)
		is(t, "mlock2 of another user", u.call(linux.SYS_MLOCK2, at, size, mem.MlockOnFault), failed(linux.ENOMEM))
		exit(u, 0)
	})
}
