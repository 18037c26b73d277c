package task

import (
	"loam/abi/linux"
	"loam/task/family"
	"loam/task/limit"
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
	errno := linux.Errno(0)
	if p != t.process && !limit.May(t.creds(), p.creds()) {
		errno = linux.EPERM
	}
	if errno == 0 && to != nil {
		errno = t.setLimit(p, resource, *to)
	}
	s.mu.Unlock()
	if errno != 0 {
		return 0, errno
	}
	return 0, t.put(get, linux.SizeofRlimit, old.Put)
}

// setLimit changes a limit of a process. The caller holds System.mu. Errors: EINVAL, EPERM.
func (t *Task) setLimit(p *Process, resource uint64, to linux.Rlimit) linux.Errno {
	to, errno := limit.Check(resource, p.limits[resource], to, t.creds(), p.posix.OpenMax.Get())
	if errno != 0 {
		return errno
	}
	p.limits[resource] = to
	p.applyLimits()
	return 0
}

// applyLimits passes the limits to the packages that enforce them. The caller holds System.mu.
func (p *Process) applyLimits() {
	if space := p.space.Load(); space != nil {
		space.SetLimits(p.memoryLimits(p.creds()))
	}
	p.posix.SetLimits(p.limits[linux.RLIMIT_NOFILE].Cur, p.limits[linux.RLIMIT_FSIZE].Cur, p.limits[linux.RLIMIT_MSGQUEUE].Cur)
	p.warned = 0
	p.retime()
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
