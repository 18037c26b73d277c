package call

import "loam/abi/linux"

// Rows of Table: calls on descriptors.
var filesRows = []Row{
	{linux.SYS_READ, "read", "fpn", Personality | Runtime | Core, Restarts, "", 0, read},
	{linux.SYS_WRITE, "write", "fpn", Personality | Runtime | Core, Restarts, "", 0, write},
	{linux.SYS_CLOSE, "close", "f", Personality | Runtime | Core, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Close(fd(a.A1)))
	}},
	{linux.SYS_FSTAT, "fstat", "fp", Personality | Runtime, Unaffected, "", 0, fstat},
	{linux.SYS_LSEEK, "lseek", "foi", Personality, Unaffected, "", 0, lseek},
	{linux.SYS_IOCTL, "ioctl", "fip", Personality | Runtime, Restarts, fewIoctls, 0, ioctl},
	{linux.SYS_PREAD64, "pread64", "fpno", Personality | Runtime, Restarts, "", 0, pread},
	{linux.SYS_PWRITE64, "pwrite64", "fpno", Personality | Runtime, Restarts, "", 0, pwrite},
	{linux.SYS_READV, "readv", "fvn", Personality | Runtime, Restarts, "", 0, readv},
	{linux.SYS_WRITEV, "writev", "fvn", Personality, Restarts, "", 0, writev},
	{linux.SYS_DUP, "dup", "f", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.Dup(fd(a.A1)))
	}},
	{linux.SYS_DUP2, "dup2", "ff", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.Dup3(fd(a.A1), fd(a.A2), 0, true))
	}},
	{linux.SYS_SENDFILE, "sendfile", "ffpn", Personality, Restarts, fromTree, 0, sendfile},
	{linux.SYS_FCNTL, "fcntl", "fip", Personality | Runtime | Core, Restarts, fewFcntls, 0, fcntl},
	{linux.SYS_FLOCK, "flock", "fi", Personality, Restarts, filesOfTree, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Flock(fd(a.A1), number(a.A2)))
	}},
	{linux.SYS_FSYNC, "fsync", "f", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fsync(fd(a.A1)))
	}},
	{linux.SYS_FDATASYNC, "fdatasync", "f", Personality | Runtime, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fdatasync(fd(a.A1)))
	}},
	{linux.SYS_FTRUNCATE, "ftruncate", "fo", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Ftruncate(fd(a.A1), int64(a.A2)))
	}},
	{linux.SYS_FCHDIR, "fchdir", "f", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fchdir(fd(a.A1)))
	}},
	{linux.SYS_FCHMOD, "fchmod", "fi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fchmod(fd(a.A1), uint32(a.A2)))
	}},
	{linux.SYS_FCHOWN, "fchown", "fii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fchown(fd(a.A1), int32(a.A2), int32(a.A3)))
	}},
	{linux.SYS_FSTATFS, "fstatfs", "fp", Personality, Unaffected, "", 0, fstatfs},
	{linux.SYS_GETDENTS64, "getdents64", "fpn", Personality, Unaffected, "", 0, getdents64},
	{linux.SYS_FADVISE64, "fadvise64", "fooi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fadvise(fd(a.A1), int64(a.A3), number(a.A4)))
	}},
	{linux.SYS_READAHEAD, "readahead", "fon", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Readahead(fd(a.A1)))
	}},
	{linux.SYS_SPLICE, "splice", "fpfpni", Personality, Restarts, "", 0, splice},
	{linux.SYS_TEE, "tee", "ffni", Personality, Restarts, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return result(c.Process.Tee(fd(a.A1), fd(a.A2), length(a.A3), unsigned(a.A4)))
	}},
	{linux.SYS_VMSPLICE, "vmsplice", "fvni", Personality, Restarts, "", 0, vmsplice},
	{linux.SYS_SYNC_FILE_RANGE, "sync_file_range", "fooi", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.SyncFileRange(fd(a.A1), int64(a.A2), int64(a.A3), number(a.A4)))
	}},
	{linux.SYS_FALLOCATE, "fallocate", "fioo", Personality, Unaffected, onlyGrows, 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Fallocate(fd(a.A1), uint32(a.A2), int64(a.A3), int64(a.A4)))
	}},
	{linux.SYS_DUP3, "dup3", "ffi", Personality, Unaffected, "", 0, dup3},
	{linux.SYS_PREADV, "preadv", "fvno", Personality, Restarts, "", 0, preadv},
	{linux.SYS_PWRITEV, "pwritev", "fvno", Personality, Restarts, "", 0, pwritev},
	{linux.SYS_PREADV2, "preadv2", "fvnooi", Personality, Restarts, noFlags, 0, preadv2},
	{linux.SYS_PWRITEV2, "pwritev2", "fvnooi", Personality, Restarts, noFlags, 0, pwritev2},
	{linux.SYS_SYNCFS, "syncfs", "f", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.Syncfs(fd(a.A1)))
	}},
	{linux.SYS_COPY_FILE_RANGE, "copy_file_range", "fpfpni", Personality, Unaffected, "", 0, copyFileRange},
	{linux.SYS_CLOSE_RANGE, "close_range", "iii", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return fail(c.Process.CloseRange(uint32(a.A1), uint32(a.A2), number(a.A3)))
	}},
	{linux.SYS_PIPE, "pipe", "p", Personality, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.pipe(a.A1, 0)
	}},
	{linux.SYS_PIPE2, "pipe2", "pi", Personality | Core, Unaffected, "", 0, func(c Caller, a Args) (uint64, linux.Errno) {
		return c.pipe(a.A1, number(a.A2))
	}},
	{linux.SYS_MEMFD_CREATE, "memfd_create", "si", Personality, Unaffected, fewMemfds, 0, memfdCreate},
	{linux.SYS_SYNC, "sync", "", Personality, Unaffected, "", 0, func(c Caller, _ Args) (uint64, linux.Errno) {
		c.Process.Sync()
		return fail(0)
	}},
}
