package task

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/task/family"
)

// Resource limits (setrlimit(2)). Package mem enforces those of memory, package posix those of descriptors and file sizes.

// prlimit implements prlimit(2). Errors: EINVAL, EPERM, ESRCH, EFAULT.
func (t *Task) prlimit(pid int, resource, set, get uint64) (uint64, linux.Errno) {
	s := t.process.system
	if resource >= linux.RLIM_NLIMITS {
		return 0, linux.EINVAL
	}
	var to *linux.Rlimit
	if set != 0 {
		r, errno := read(t, set, linux.SizeofRlimit, linux.ParseRlimit)
		if errno != 0 {
			return 0, errno
		}
		to = &r
	}
	s.mu.Lock()
	p := t.process
	if pid != 0 {
		of := s.tasks[family.PID(pid)]
		if of == nil {
			s.mu.Unlock()
			return 0, linux.ESRCH
		}
		p = of.process
	}
	old := p.limits[resource]
	errno := t.mayLimit(p)
	if errno == 0 && to != nil {
		errno = t.setLimit(p, resource, *to)
	}
	s.mu.Unlock()
	if errno != 0 {
		return 0, errno
	}
	return 0, t.put(get, linux.SizeofRlimit, old.Put)
}

// mayLimit checks whether the task may see and change the limits of a process. The caller holds System.mu. Errors: EPERM.
func (t *Task) mayLimit(p *Process) linux.Errno {
	own, other := t.creds(), p.creds()
	same := own.UID == other.UID && own.UID == other.EUID && own.UID == other.SUID &&
		own.GID == other.GID && own.GID == other.EGID && own.GID == other.SGID
	if p == t.process || same || own.Has(linux.CAP_SYS_RESOURCE) {
		return 0
	}
	return linux.EPERM
}

// setLimit changes a limit of a process. The caller holds System.mu. Errors: EINVAL, EPERM.
func (t *Task) setLimit(p *Process, resource uint64, to linux.Rlimit) linux.Errno {
	switch {
	case to.Cur > to.Max:
		return linux.EINVAL
	case resource == linux.RLIMIT_NOFILE && to.Max > maxOpenFiles,
		to.Max > p.limits[resource].Max && !t.creds().Has(linux.CAP_SYS_RESOURCE):
		return linux.EPERM
	}
	if resource == linux.RLIMIT_CPU && to.Cur == 0 {
		to.Cur = 1 // as on Linux, 0 means at once
	}
	p.limits[resource] = to
	p.applyLimits()
	return 0
}

// maxOpenFiles bounds RLIMIT_NOFILE (/proc/sys/fs/nr_open).
const maxOpenFiles = 1 << 20

// applyLimits passes the limits to the packages that enforce them. The caller holds System.mu.
func (p *Process) applyLimits() {
	if space := p.space.Load(); space != nil {
		space.SetLimits(p.memoryLimits())
	}
	p.posix.SetLimits(p.limits[linux.RLIMIT_NOFILE].Cur, p.limits[linux.RLIMIT_FSIZE].Cur, p.limits[linux.RLIMIT_MSGQUEUE].Cur)
	p.warned = 0
	p.retime()
}

// defaultLimits returns the limits of the first process: Linux's defaults for a machine of a size in pages.
func defaultLimits(pages int64) (l [linux.RLIM_NLIMITS]linux.Rlimit) {
	for i := range l {
		l[i] = linux.Rlimit{Cur: mem.Infinite, Max: mem.Infinite}
	}
	const (
		files, stack, locked, queues = 1024, 8 << 20, 8 << 20, 819200
		pagesPerTask                 = 32 // pages of memory for each task that RLIMIT_NPROC allows
	)
	tasks := uint64(max(pages/pagesPerTask, 64))
	l[linux.RLIMIT_NOFILE] = linux.Rlimit{Cur: files, Max: maxOpenFiles}
	l[linux.RLIMIT_STACK].Cur = stack
	l[linux.RLIMIT_CORE].Cur = 0
	l[linux.RLIMIT_MEMLOCK] = linux.Rlimit{Cur: locked, Max: locked}
	l[linux.RLIMIT_NPROC] = linux.Rlimit{Cur: tasks, Max: tasks}
	l[linux.RLIMIT_SIGPENDING] = l[linux.RLIMIT_NPROC]
	l[linux.RLIMIT_MSGQUEUE] = linux.Rlimit{Cur: queues, Max: queues}
	l[linux.RLIMIT_NICE], l[linux.RLIMIT_RTPRIO] = linux.Rlimit{}, linux.Rlimit{}
	return l
}

// mayClone checks RLIMIT_NPROC for a new task of the user. The caller holds System.mu. Errors: EAGAIN.
func (t *Task) mayClone() linux.Errno {
	c := t.creds()
	if c.UID == 0 || c.Has(linux.CAP_SYS_RESOURCE) || c.Has(linux.CAP_SYS_ADMIN) {
		return 0
	}
	if t.process.system.processesOf(c.UID) >= t.process.limits[linux.RLIMIT_NPROC].Cur {
		return linux.EAGAIN
	}
	return 0
}

// exceeds reports whether a change of the user made the process exceed RLIMIT_NPROC, and still does (execve(2)).
func (p *Process) exceeds() bool {
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	p.exceeded = p.exceeded && s.processesOf(p.creds().UID) > p.limits[linux.RLIMIT_NPROC].Cur
	return p.exceeded
}

// limit returns the soft limit of a resource.
func (p *Process) limit(resource int) uint64 {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return p.limits[resource].Cur
}
