package task

import (
	"testing"

	"loam/abi/linux"
	"loam/fs/pseudo"
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

// A further mount of proc is made or becomes read-only alone: the first one stays writable.
func TestReadOnlyProc(t *testing.T) {
	const target, kind, key, data = dataAt + 512, dataAt + 600, dataAt + 700, dataAt + 800
	run(t, func(u *user) {
		u.text(target, "/p")
		u.text(kind, "proc")
		writes := func(path string) int64 {
			fd := u.call(linux.SYS_OPEN, u.text(data, path), linux.O_WRONLY)
			if fd < 0 {
				return fd
			}
			return u.call(linux.SYS_CLOSE, uint64(fd))
		}
		both := func(when string, want int64) {
			t.Helper()
			is(t, when+": the new mount", writes("/p/self/comm"), want)
			is(t, when+": the first mount", writes("/proc/self/comm"), 0)
		}
		is(t, "mkdir", u.call(linux.SYS_MKDIR, target, 0o755), 0)
		fd := uint64(u.call(linux.SYS_FSOPEN, kind, 0))
		is(t, "ro", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_SET_FLAG, u.text(key, "ro"), 0, 0), 0)
		is(t, "create", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_CMD_CREATE, 0, 0, 0), 0)
		at := u.call(linux.SYS_FSMOUNT, fd, 0, 0)
		is(t, "move", u.call(linux.SYS_MOVE_MOUNT, uint64(at), u.text(data, ""), 0, target, linux.MOVE_MOUNT_F_EMPTY_PATH), 0)
		both("created", failed(linux.EROFS))
		is(t, "rw", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_SET_FLAG, u.text(key, "rw"), 0, 0), 0)
		is(t, "reconfigure", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0), 0)
		both("reconfigured", 0)
		is(t, "unmount", u.call(linux.SYS_UMOUNT2, target, 0), 0)

		is(t, "mount", u.call(linux.SYS_MOUNT, 0, target, kind, linux.MS_RDONLY, 0), 0)
		both("mounted", failed(linux.EROFS))
		is(t, "writable", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_REMOUNT, 0), 0)
		both("remounted", 0)
		is(t, "read-only", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_REMOUNT|linux.MS_RDONLY, 0), 0)
		is(t, "the flag of the mount", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_REMOUNT|linux.MS_BIND, 0), 0)
		both("remounted again", failed(linux.EROFS))
		exit(u, 0)
	})
}

// A further mount of sysfs, which is one file system, can be read-only alone; remounting without MS_BIND changes all mounts.
func TestReadOnlySysfs(t *testing.T) {
	const target, kind, key, data = dataAt + 512, dataAt + 600, dataAt + 700, dataAt + 800
	runIn(t, func(w *world) func() {
		v := w.root.View()
		w.root.MkdirAt(linux.AT_FDCWD, "/sys", 0o555)
		place, err := v.Lookup(v.Root, "/sys", true)
		if err == nil {
			err = v.Tree.Mount(pseudo.New(pseudo.SysMagic), place, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {}
	}, func(u *user) {
		u.text(target, "/s")
		u.text(kind, "sysfs")
		readOnly := func(when string, again, first bool) {
			t.Helper()
			for path, want := range map[string]bool{"/s/x": again, "/sys/x": first} {
				got := u.call(linux.SYS_MKDIR, u.text(data, path), 0o755) == failed(linux.EROFS)
				if got != want {
					t.Errorf("%s: %s is read-only: %v, want %v", when, path, got, want)
				}
			}
		}
		is(t, "mkdir", u.call(linux.SYS_MKDIR, target, 0o755), 0)
		fd := uint64(u.call(linux.SYS_FSOPEN, kind, 0))
		is(t, "ro", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_SET_FLAG, u.text(key, "ro"), 0, 0), 0)
		is(t, "create", u.call(linux.SYS_FSCONFIG, fd, linux.FSCONFIG_CMD_CREATE, 0, 0, 0), 0)
		at := u.call(linux.SYS_FSMOUNT, fd, 0, 0)
		is(t, "move", u.call(linux.SYS_MOVE_MOUNT, uint64(at), u.text(data, ""), 0, target, linux.MOVE_MOUNT_F_EMPTY_PATH), 0)
		readOnly("created", true, false)
		is(t, "read-only", u.call(linux.SYS_MOUNT, 0, target, 0, linux.MS_REMOUNT|linux.MS_RDONLY, 0), 0)
		readOnly("remounted", true, true)
		exit(u, 0)
	})
}
