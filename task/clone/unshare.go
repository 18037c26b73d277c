package clone

import "loam/abi/linux"

// Unshare selects what a thread stops sharing with other threads: the working folder, the descriptors, and the mounts. With
// Mounts, Place is also set.
type Unshare struct{ Place, Descriptors, Mounts bool }

// ParseUnshare checks the flags of unshare(2). alone is set if the process has only one thread, and admin if the caller has
// CAP_SYS_ADMIN. Errors: EPERM for namespaces other than mount namespaces, as for a caller without privilege; EINVAL, also if
// the process has other threads: they share what the call would separate (see CAVEATS.md).
func ParseUnshare(flags uint64, alone, admin bool) (u Unshare, errno linux.Errno) {
	const (
		ofThreads = linux.CLONE_THREAD | linux.CLONE_SIGHAND | linux.CLONE_VM // allowed without effect if there is one thread
		own       = linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SYSVSEM
	)
	mounts := admin && flags&Namespaces == linux.CLONE_NEWNS
	if mounts {
		flags = flags&^linux.CLONE_NEWNS | linux.CLONE_FS
	}
	switch {
	case flags&^(Namespaces|ofThreads|own) != 0, flags&ofThreads != 0 && !alone:
		return u, linux.EINVAL
	case flags&Namespaces != 0:
		return u, linux.EPERM
	case flags&own == 0:
		return u, 0
	case !alone:
		return u, linux.EINVAL
	}
	return Unshare{Place: flags&linux.CLONE_FS != 0, Descriptors: flags&linux.CLONE_FILES != 0, Mounts: mounts}, 0
}
