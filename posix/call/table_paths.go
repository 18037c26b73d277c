package call

import "loam/abi/linux"

// Rows of Table: calls that take paths, and inotify.
var pathsRows = []Row{
	{linux.SYS_OPEN, "open", "sii", Personality | Core, Restarts, noDirect, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.open(linux.AT_FDCWD, a.A1, number(a.A2), uint32(a.A3))
	}},
	{linux.SYS_OPENAT, "openat", "dsii", Personality | Core, Restarts, noDirect, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.open(fd(a.A1), a.A2, number(a.A3), uint32(a.A4))
	}},
	{linux.SYS_OPENAT2, "openat2", "dspn", Personality, Restarts, boundedWalk, 0, openat2},
	{linux.SYS_CREAT, "creat", "si", Personality, Restarts, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.open(linux.AT_FDCWD, a.A1, linux.O_CREAT|linux.O_WRONLY|linux.O_TRUNC, uint32(a.A2))
	}},
	{linux.SYS_STAT, "stat", "sp", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.stat(linux.AT_FDCWD, a.A1, a.A2, 0)
	}},
	{linux.SYS_LSTAT, "lstat", "sp", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.stat(linux.AT_FDCWD, a.A1, a.A2, linux.AT_SYMLINK_NOFOLLOW)
	}},
	{linux.SYS_NEWFSTATAT, "newfstatat", "dspi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.stat(fd(a.A1), a.A2, a.A3, number(a.A4))
	}},
	{linux.SYS_STATX, "statx", "dsiip", Personality, Unaffected, "", 0, statx},
	{linux.SYS_ACCESS, "access", "si", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.access(linux.AT_FDCWD, a.A1, uint32(a.A2), 0)
	}},
	{linux.SYS_FACCESSAT, "faccessat", "dsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.access(fd(a.A1), a.A2, uint32(a.A3), 0)
	}},
	{linux.SYS_FACCESSAT2, "faccessat2", "dsii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.access(fd(a.A1), a.A2, uint32(a.A3), number(a.A4))
	}},
	{linux.SYS_TRUNCATE, "truncate", "so", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.withPath(a.A1, func(name string) linux.Errno { return c.Process.Truncate(name, int64(a.A2)) })
	}},
	{linux.SYS_GETCWD, "getcwd", "pn", Personality, Unaffected, "", 0, getcwd},
	{linux.SYS_CHDIR, "chdir", "s", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.withPath(a.A1, c.Process.Chdir)
	}},
	{linux.SYS_CHROOT, "chroot", "s", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.withPath(a.A1, c.Process.Chroot)
	}},
	{linux.SYS_RENAME, "rename", "ss", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.rename(linux.AT_FDCWD, a.A1, linux.AT_FDCWD, a.A2, 0)
	}},
	{linux.SYS_RENAMEAT, "renameat", "dsds", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.rename(fd(a.A1), a.A2, fd(a.A3), a.A4, 0)
	}},
	{linux.SYS_RENAMEAT2, "renameat2", "dsdsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.rename(fd(a.A1), a.A2, fd(a.A3), a.A4, uint32(a.A5))
	}},
	{linux.SYS_MKDIR, "mkdir", "si", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.mkdir(linux.AT_FDCWD, a.A1, uint32(a.A2))
	}},
	{linux.SYS_MKDIRAT, "mkdirat", "dsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.mkdir(fd(a.A1), a.A2, uint32(a.A3))
	}},
	{linux.SYS_RMDIR, "rmdir", "s", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.unlink(linux.AT_FDCWD, a.A1, linux.AT_REMOVEDIR)
	}},
	{linux.SYS_UNLINK, "unlink", "s", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.unlink(linux.AT_FDCWD, a.A1, 0)
	}},
	{linux.SYS_UNLINKAT, "unlinkat", "dsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.unlink(fd(a.A1), a.A2, number(a.A3))
	}},
	{linux.SYS_LINK, "link", "ss", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.link(linux.AT_FDCWD, a.A1, linux.AT_FDCWD, a.A2, 0)
	}},
	{linux.SYS_LINKAT, "linkat", "dsdsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.link(fd(a.A1), a.A2, fd(a.A3), a.A4, number(a.A5))
	}},
	{linux.SYS_SYMLINK, "symlink", "ss", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.symlink(a.A1, linux.AT_FDCWD, a.A2)
	}},
	{linux.SYS_SYMLINKAT, "symlinkat", "sds", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.symlink(a.A1, fd(a.A2), a.A3)
	}},
	{linux.SYS_READLINK, "readlink", "spn", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.readlink(linux.AT_FDCWD, a.A1, a.A2, number(a.A3))
	}},
	{linux.SYS_READLINKAT, "readlinkat", "dspn", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.readlink(fd(a.A1), a.A2, a.A3, number(a.A4))
	}},
	{linux.SYS_CHMOD, "chmod", "si", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chmod(linux.AT_FDCWD, a.A1, uint32(a.A2), 0)
	}},
	{linux.SYS_FCHMODAT, "fchmodat", "dsi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chmod(fd(a.A1), a.A2, uint32(a.A3), 0)
	}},
	{linux.SYS_FCHMODAT2, "fchmodat2", "dsii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chmod(fd(a.A1), a.A2, uint32(a.A3), number(a.A4))
	}},
	{linux.SYS_CHOWN, "chown", "sii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chown(linux.AT_FDCWD, a.A1, int32(a.A2), int32(a.A3), 0)
	}},
	{linux.SYS_LCHOWN, "lchown", "sii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chown(linux.AT_FDCWD, a.A1, int32(a.A2), int32(a.A3), linux.AT_SYMLINK_NOFOLLOW)
	}},
	{linux.SYS_FCHOWNAT, "fchownat", "dsiii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.chown(fd(a.A1), a.A2, int32(a.A3), int32(a.A4), number(a.A5))
	}},
	{linux.SYS_MKNOD, "mknod", "sio", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.mknod(linux.AT_FDCWD, a.A1, uint32(a.A2), a.A3)
	}},
	{linux.SYS_MKNODAT, "mknodat", "dsio", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.mknod(fd(a.A1), a.A2, uint32(a.A3), a.A4)
	}},
	{linux.SYS_UTIME, "utime", "sp", Personality, Unaffected, "", 0, utime},
	{linux.SYS_UTIMES, "utimes", "sp", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.utimes(linux.AT_FDCWD, a.A1, a.A2)
	}},
	{linux.SYS_FUTIMESAT, "futimesat", "dsp", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.utimes(fd(a.A1), a.A2, a.A3)
	}},
	{linux.SYS_UTIMENSAT, "utimensat", "dspi", Personality, Unaffected, "", 0, utimensat},
	{linux.SYS_STATFS, "statfs", "sp", Personality, Unaffected, "", 0, statfs},
	{linux.SYS_SETXATTR, "setxattr", "ssppni", Personality, Unaffected, userXattrs, 0, xattrFile(byPath).set},
	{linux.SYS_LSETXATTR, "lsetxattr", "ssppni", Personality, Unaffected, userXattrs, 0, xattrFile(byLink).set},
	{linux.SYS_FSETXATTR, "fsetxattr", "fsppni", Personality, Unaffected, userXattrs, 0, xattrFile(byDescriptor).set},
	{linux.SYS_GETXATTR, "getxattr", "sspn", Personality, Unaffected, userXattrs, 0, xattrFile(byPath).get},
	{linux.SYS_LGETXATTR, "lgetxattr", "sspn", Personality, Unaffected, userXattrs, 0, xattrFile(byLink).get},
	{linux.SYS_FGETXATTR, "fgetxattr", "fspn", Personality, Unaffected, userXattrs, 0, xattrFile(byDescriptor).get},
	{linux.SYS_LISTXATTR, "listxattr", "spn", Personality, Unaffected, userXattrs, 0, xattrFile(byPath).list},
	{linux.SYS_LLISTXATTR, "llistxattr", "spn", Personality, Unaffected, userXattrs, 0, xattrFile(byLink).list},
	{linux.SYS_FLISTXATTR, "flistxattr", "fpn", Personality, Unaffected, userXattrs, 0, xattrFile(byDescriptor).list},
	{linux.SYS_REMOVEXATTR, "removexattr", "ss", Personality, Unaffected, userXattrs, 0, xattrFile(byPath).remove},
	{linux.SYS_LREMOVEXATTR, "lremovexattr", "ss", Personality, Unaffected, userXattrs, 0, xattrFile(byLink).remove},
	{linux.SYS_FREMOVEXATTR, "fremovexattr", "fs", Personality, Unaffected, userXattrs, 0, xattrFile(byDescriptor).remove},
	{linux.SYS_UMASK, "umask", "i", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return uint64(c.Process.Umask(uint32(a.A1))), 0
	}},
	{linux.SYS_MOUNT, "mount", "ssppp", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_UMOUNT2, "umount2", "si", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_PIVOT_ROOT, "pivot_root", "ss", Personality, Unaffected, "", linux.EPERM, nil},
	{linux.SYS_NAME_TO_HANDLE_AT, "name_to_handle_at", "dsppi", Personality, Unaffected, "", linux.EOPNOTSUPP, nil},
	{linux.SYS_OPEN_BY_HANDLE_AT, "open_by_handle_at", "fpi", Personality, Unaffected, "", linux.EOPNOTSUPP, nil},
	{linux.SYS_INOTIFY_INIT, "inotify_init", "", Personality, Unaffected, "", 0, func(c Caller, _ Args) (uint64, linux.Errno) {
		return result(c.Process.InotifyInit(0))
	}},
	{linux.SYS_INOTIFY_INIT1, "inotify_init1", "i", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.InotifyInit(number(a.A1)))
	}},
	{linux.SYS_INOTIFY_ADD_WATCH, "inotify_add_watch", "fsi", Personality, Unaffected, newestName, 0, inotifyAddWatch},
	{linux.SYS_INOTIFY_RM_WATCH, "inotify_rm_watch", "fi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.InotifyRmWatch(fd(a.A1), int32(a.A2)))
	}},
}
