package task

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/vector"
)

// processMadvise implements process_madvise(2). It returns the number of bytes advised. Errors: EBADF, EFAULT, EINVAL, ESRCH;
// EACCES if the task may not inspect the process; EPERM without CAP_SYS_NICE; and those of madvise(2).
func processMadvise(t *Task, a call.Args) (uint64, linux.Errno) {
	advice := number(a.A4)
	if uint32(a.A5) != 0 {
		return 0, linux.EINVAL
	}
	ranges, errno := vector.Read(t.caller.Memory, a.A2, a.A3)
	if errno != 0 {
		return 0, errno
	}
	p, _, errno := t.watched(a.A1)
	if errno != 0 {
		return 0, errno
	}
	_, errno = locked(t, func() (uint64, linux.Errno) {
		switch {
		case p.Ended():
			return 0, linux.ESRCH
		case p == t.process:
			return 0, 0
		case advice != mem.AdviseCold && advice != mem.AdvisePageOut && advice != mem.AdviseWillNeed:
			return 0, linux.EINVAL
		case !t.mayInspect(p, true):
			return 0, linux.EACCES
		case !t.creds().Has(linux.CAP_SYS_NICE):
			return 0, linux.EPERM
		}
		return 0, 0
	})
	if errno != 0 {
		return 0, errno
	}
	of := p.borrow()
	if of == nil {
		return 0, linux.ESRCH
	}
	defer of.leave()
	done := uint64(0)
	for _, r := range ranges {
		if err := of.Madvise(r.Base, r.Len, advice); err != nil {
			if done == 0 {
				return 0, file.ToErrno(err)
			}
			break
		}
		done += r.Len
	}
	return done, 0
}

// processMrelease implements process_mrelease(2). The memory of a process that ends is always released at once. Errors: EBADF;
// EINVAL if the process does not end; ESRCH if it has ended.
func processMrelease(t *Task, a call.Args) (uint64, linux.Errno) {
	if uint32(a.A2) != 0 {
		return 0, linux.EINVAL
	}
	p, _, errno := t.watched(a.A1)
	if errno != 0 {
		return 0, errno
	}
	return locked(t, func() (uint64, linux.Errno) {
		switch {
		case p.Ended():
			return 0, linux.ESRCH
		case !p.ending:
			return 0, linux.EINVAL
		}
		return 0, 0
	})
}
