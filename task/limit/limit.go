// Package limit has the rules of resource limits (setrlimit(2)): the defaults, and the checks of a change. Package mem enforces the
// limits of memory, package posix the limits of descriptors and file sizes, and package task the others.
package limit

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/credential"
)

// MaxOpenFiles is the default of RLIMIT_NOFILE's hard limit, and of fs.nr_open.
const MaxOpenFiles = 1 << 20

// Set holds the limits of a process, by resource.
type Set = [linux.RLIM_NLIMITS]linux.Rlimit

// Default returns the limits of the first process: Linux's defaults for a machine of a size in pages.
func Default(pages int64) (l Set) {
	for i := range l {
		l[i] = linux.Rlimit{Cur: mem.Infinite, Max: mem.Infinite}
	}
	const (
		files, stack, locked, queues = 1024, 8 << 20, 8 << 20, 819200
		pagesPerTask                 = 64 // RLIMIT_NPROC allows one thread for this number of pages of memory, as on Linux
	)
	tasks := uint64(max(pages/pagesPerTask, 64))
	l[linux.RLIMIT_NOFILE] = linux.Rlimit{Cur: files, Max: MaxOpenFiles}
	l[linux.RLIMIT_STACK].Cur = stack
	l[linux.RLIMIT_CORE].Cur = 0
	l[linux.RLIMIT_MEMLOCK] = linux.Rlimit{Cur: locked, Max: locked}
	l[linux.RLIMIT_NPROC] = linux.Rlimit{Cur: tasks, Max: tasks}
	l[linux.RLIMIT_SIGPENDING] = l[linux.RLIMIT_NPROC]
	l[linux.RLIMIT_MSGQUEUE] = linux.Rlimit{Cur: queues, Max: queues}
	l[linux.RLIMIT_NICE], l[linux.RLIMIT_RTPRIO] = linux.Rlimit{}, linux.Rlimit{}
	return l
}

// May reports whether a thread with the credentials own may read and change the limits of a process with the credentials
// other.
func May(own, other *credential.Set) bool {
	same := own.UID == other.UID && own.UID == other.EUID && own.UID == other.SUID &&
		own.GID == other.GID && own.GID == other.EGID && own.GID == other.SGID
	return same || own.Has(linux.CAP_SYS_RESOURCE)
}

// Check returns the new limit of a resource, if a thread with the credentials own may
// replace the old limit by a new one (the parameter to). mostFiles is the setting fs.nr_open. Errors: EINVAL, EPERM.
func Check(resource uint64, old, to linux.Rlimit, own *credential.Set, mostFiles int64) (linux.Rlimit, linux.Errno) {
	switch {
	case to.Cur > to.Max:
		return old, linux.EINVAL
	case resource == linux.RLIMIT_NOFILE && to.Max > uint64(mostFiles),
		to.Max > old.Max && !own.Has(linux.CAP_SYS_RESOURCE):
		return old, linux.EPERM
	}
	if resource == linux.RLIMIT_CPU && to.Cur == 0 {
		to.Cur = 1 // a CPU limit of 0 means 1 second, as on Linux
	}
	return to, 0
}
