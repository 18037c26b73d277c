package task

import (
	"testing"

	"loam/abi/linux"
)

// mount(2) makes a file system in memory, and shows directories at other places with other rights.
func TestMount(t *testing.T) {
	const target, kind, options, data = dataAt + 512, dataAt + 600, dataAt + 700, dataAt + 800
	run(t, func(u *user) {
		u.text(target, "/m")
		u.text(kind, "tmpfs")
		is(t, "no directory", u.call(linux.SYS_MOUNT, 0, target, kind, 0, 0), failed(linux.ENOENT))
		is(t, "mkdir", u.call(linux.SYS_MKDIR, target, 0o755), 0)
		is(t, "no target", u.call(linux.SYS_MOUNT, 0, 0, kind, 0, 0), failed(linux.EFAULT))
		is(t, "no type", u.call(linux.SYS_MOUNT, 0, target, 0, 0, 0), failed(linux.EINVAL))
		is(t, "unknown type", u.call(linux.SYS_MOUNT, 0, target, u.text(data, "ext9"), 0, 0), failed(linux.ENODEV))
		is(t, "unknown option", u.call(linux.SYS_MOUNT, 0, target, kind, 0, u.text(options, "x=1")), failed(linux.EINVAL))
		is(t, "bad size", u.call(linux.SYS_MOUNT, 0, target, kind, 0, u.text(options, "size=-1")), failed(linux.EINVAL))
		is(t, "tmpfs", u.call(linux.SYS_MOUNT, 0, target, kind, linux.MS_NOEXEC, u.text(options, "size=1m,mode=700")), 0)
		is(t, "mkdir inside", u.call(linux.SYS_MKDIR, u.text(data, "/m/x"), 0o755), 0)
		is(t, "unmount", u.call(linux.SYS_UMOUNT2, target, 0), 0)
		is(t, "the directory below", u.call(linux.SYS_RMDIR, data), failed(linux.ENOENT))
		is(t, "not mounted", u.call(linux.SYS_UMOUNT2, target, 0), failed(linux.EINVAL))
		is(t, "unknown flag", u.call(linux.SYS_UMOUNT2, target, 1<<20), failed(linux.EINVAL))

		is(t, "bind", u.call(linux.SYS_MOUNT, u.text(data, "/"), target, 0, linux.MS_BIND, 0), 0)
		is(t, "private", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_PRIVATE|linux.MS_REC, 0), 0)
		is(t, "remount", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_REMOUNT|linux.MS_BIND|linux.MS_NOEXEC, 0), 0)
		const usage, flagsAt = dataAt + 0x400, 80 // of f_flags in struct statfs
		is(t, "statfs", u.call(linux.SYS_STATFS, target, usage), 0)
		is(t, "its flags", int64(u.load32(usage+flagsAt)&0xf), linux.ST_NOEXEC)
		is(t, "execute", u.call(linux.SYS_EXECVE, u.text(data, "/m/1"), 0, 0), failed(linux.EACCES))
		fd := u.call(linux.SYS_OPEN, data, linux.O_RDONLY)
		is(t, "map as code", u.call(linux.SYS_MMAP, 0, 4096, linux.PROT_EXEC, linux.MAP_PRIVATE, uint64(fd), 0), failed(linux.EPERM))
		is(t, "map", min(u.call(linux.SYS_MMAP, 0, 4096, linux.PROT_READ, linux.MAP_PRIVATE, uint64(fd), 0), 0), 0)
		u.frame.R15 = 2
		child := u.call(linux.SYS_CLONE, linux.CLONE_NEWNS|linux.SIGCHLD, 0, 0, 0)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		is(t, "execute after it", u.call(linux.SYS_EXECVE, data, 0, 0), failed(linux.EACCES))
		is(t, "not with the same folder", u.call(linux.SYS_CLONE, linux.CLONE_NEWNS|linux.CLONE_FS, 0, 0, 0), failed(linux.EINVAL))
		is(t, "unshare", u.call(linux.SYS_UNSHARE, linux.CLONE_NEWNS), 0)
		is(t, "unmount there", u.call(linux.SYS_UMOUNT2, target, 0), 0)
		child = u.fork(1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), 0, 0, 0), child)
		is(t, "setuid", u.call(linux.SYS_SETUID, 1000), 0)
		is(t, "without a right", u.call(linux.SYS_MOUNT, 0, target, kind, 0, 0), failed(linux.EPERM))
		is(t, "unmount without a right", u.call(linux.SYS_UMOUNT2, target, 0), failed(linux.EPERM))
		exit(u, 0)
	}, func(u *user) { exit(u, 0) }, func(u *user) {
		is(t, "unmount in the child", u.call(linux.SYS_UMOUNT2, target, 0), 0)
		exit(u, 0)
	})
}
