package linux

// Flags and numbers of calls about files.
//
// headers: stdio.h fcntl.h sys/stat.h sys/mman.h sys/file.h sys/eventfd.h sys/timerfd.h sys/inotify.h sys/epoll.h poll.h limits.h linux/limits.h linux/openat2.h linux/close_range.h linux/stat.h linux/xattr.h sys/statvfs.h unistd.h dirent.h
const (
	AT_EACCESS          = 0x200
	AT_EMPTY_PATH       = 0x1000
	AT_FDCWD            = -100
	AT_NO_AUTOMOUNT     = 0x800
	AT_REMOVEDIR        = 0x200
	AT_STATX_DONT_SYNC  = 0x4000
	AT_STATX_FORCE_SYNC = 0x2000
	AT_STATX_SYNC_TYPE  = 0x6000
	AT_SYMLINK_FOLLOW   = 0x400
	AT_SYMLINK_NOFOLLOW = 0x100
	CLOSE_RANGE_CLOEXEC = 4
	CLOSE_RANGE_UNSHARE = 2
	DT_UNKNOWN          = 0

	EFD_CLOEXEC    = 0x80000
	EFD_NONBLOCK   = 0x800
	EFD_SEMAPHORE  = 1
	EPOLLET        = 0x80000000
	EPOLLEXCLUSIVE = 0x10000000
	EPOLLONESHOT   = 0x40000000
	EPOLLWAKEUP    = 0x20000000

	EPOLL_CLOEXEC       = 0x80000
	EPOLL_CTL_ADD       = 1
	EPOLL_CTL_DEL       = 2
	EPOLL_CTL_MOD       = 3
	FALLOC_FL_KEEP_SIZE = 1
	FD_CLOEXEC          = 1

	DN_MULTISHOT = 0x80000000

	F_ADD_SEALS         = 0x409
	F_DUPFD             = 0
	F_DUPFD_CLOEXEC     = 0x406
	F_DUPFD_QUERY       = 0x403
	F_CREATED_QUERY     = 0x404
	F_GETFD             = 1
	F_GETFL             = 3
	F_GETLK             = 5
	F_GETOWN            = 9
	F_GETOWN_EX         = 16
	F_GETSIG            = 11
	F_OWNER_PGRP        = 2
	F_OWNER_PID         = 1
	F_OWNER_TID         = 0
	F_GETPIPE_SZ        = 0x408
	F_GET_SEALS         = 0x40a
	F_GETLEASE          = 0x401
	F_NOTIFY            = 0x402
	F_OFD_GETLK         = 36
	F_OFD_SETLK         = 37
	F_OFD_SETLKW        = 38
	F_RDLCK             = 0
	F_SEAL_FUTURE_WRITE = 0x10
	F_SEAL_GROW         = 4
	F_SEAL_SEAL         = 1
	F_SEAL_SHRINK       = 2
	F_SEAL_WRITE        = 8
	F_SETFD             = 2
	F_SETFL             = 4
	F_SETLEASE          = 0x400
	F_SETLK             = 6
	F_SETLKW            = 7
	F_SETOWN            = 8
	F_SETOWN_EX         = 15
	F_SETSIG            = 10
	F_SETPIPE_SZ        = 0x407
	F_UNLCK             = 2
	F_WRLCK             = 1

	IN_ACCESS        = 1
	IN_ALL_EVENTS    = 0xfff
	IN_ATTRIB        = 4
	IN_CLOEXEC       = 0x80000
	IN_CLOSE_NOWRITE = 0x10
	IN_CLOSE_WRITE   = 8
	IN_CREATE        = 0x100
	IN_DELETE        = 0x200
	IN_DELETE_SELF   = 0x400
	IN_DONT_FOLLOW   = 0x2000000
	IN_EXCL_UNLINK   = 0x4000000
	IN_IGNORED       = 0x8000
	IN_ISDIR         = 0x40000000
	IN_MASK_ADD      = 0x20000000
	IN_MASK_CREATE   = 0x10000000
	IN_MODIFY        = 2
	IN_MOVED_FROM    = 0x40
	IN_MOVED_TO      = 0x80
	IN_MOVE_SELF     = 0x800
	IN_NONBLOCK      = 0x800
	IN_ONESHOT       = 0x80000000
	IN_ONLYDIR       = 0x1000000
	IN_OPEN          = 0x20
	IN_Q_OVERFLOW    = 0x4000

	LOCK_EX           = 2
	LOCK_NB           = 4
	LOCK_SH           = 1
	LOCK_UN           = 8
	MFD_ALLOW_SEALING = 2
	MFD_CLOEXEC       = 1
	NAME_MAX          = 255

	O_ACCMODE        = 3
	O_APPEND         = 0x400
	O_ASYNC          = 0x2000
	O_CLOEXEC        = 0x80000
	O_CREAT          = 0x40
	O_DIRECT         = 0x4000
	O_DIRECTORY      = 0x10000
	O_DSYNC          = 0x1000
	O_EXCL           = 0x80
	O_LARGEFILE      = 0
	O_NDELAY         = 0x800
	O_NOATIME        = 0x40000
	O_NOCTTY         = 0x100
	O_NOFOLLOW       = 0x20000
	O_NONBLOCK       = 0x800
	O_PATH           = 0x200000
	O_RDONLY         = 0
	O_RDWR           = 2
	O_SYNC           = 0x101000
	O_TMPFILE        = 0x410000
	O_TRUNC          = 0x200
	O_WRONLY         = 1
	PATH_MAX         = 0x1000
	POLLERR          = 8
	POLLHUP          = 0x10
	POLLIN           = 1
	POLLNVAL         = 0x20
	POLLOUT          = 4
	POLLPRI          = 2
	POLLRDHUP        = 0x2000
	POLLRDNORM       = 0x40
	POLLWRBAND       = 0x200
	POLLWRNORM       = 0x100
	RENAME_EXCHANGE  = 2
	RENAME_NOREPLACE = 1
	RENAME_WHITEOUT  = 4

	RESOLVE_BENEATH       = 8
	RESOLVE_CACHED        = 0x20
	RESOLVE_IN_ROOT       = 0x10
	RESOLVE_NO_MAGICLINKS = 2
	RESOLVE_NO_SYMLINKS   = 4
	RESOLVE_NO_XDEV       = 1
	R_OK                  = 4

	SEEK_CUR          = 1
	SEEK_DATA         = 3
	SEEK_END          = 2
	SEEK_HOLE         = 4
	SEEK_SET          = 0
	STATX_BASIC_STATS = 0x7ff
	STATX__RESERVED   = 0x80000000
	ST_NODEV          = 4
	ST_NOEXEC         = 8
	ST_NOSUID         = 2
	ST_RDONLY         = 1

	SYNC_FILE_RANGE_WAIT_AFTER  = 4
	SYNC_FILE_RANGE_WAIT_BEFORE = 1
	SYNC_FILE_RANGE_WRITE       = 2

	S_IFBLK  = 0o60000
	S_IFCHR  = 0o20000
	S_IFDIR  = 0o40000
	S_IFIFO  = 0o10000
	S_IFLNK  = 0o120000
	S_IFMT   = 0o170000
	S_IFREG  = 0o100000
	S_IFSOCK = 0o140000
	S_ISGID  = 0o2000
	S_ISUID  = 0o4000
	S_ISVTX  = 0o1000

	TFD_CLOEXEC             = 0x80000
	TFD_NONBLOCK            = 0x800
	TFD_TIMER_ABSTIME       = 1
	TFD_TIMER_CANCEL_ON_SET = 2
	UTIME_NOW               = 0x3fffffff
	UTIME_OMIT              = 0x3ffffffe
	W_OK                    = 2

	XATTR_CREATE   = 1
	XATTR_NAME_MAX = 255
	XATTR_REPLACE  = 2
	XATTR_SIZE_MAX = 0x10000
	X_OK           = 1
)
