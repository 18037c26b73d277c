package task

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/vector"
)

// Calls on the memory of a process that a pidfd names.

// processMadvise implements process_madvise(2). It returns the number of bytes to which the advice was applied. Errors: EINVAL,
// EFAULT, EBADF, ESRCH, EPERM, ENOMEM.
func processMadvise(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A5 != 0 {
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
	advice := number(a.A4)
	if errno := t.mayAdvise(p, advice); errno != 0 {
		return 0, errno
	}
	of := p.borrow()
	if of == nil {
		return 0, linux.ESRCH
	}
	defer of.leave()
	done := uint64(0)
	for _, r := range ranges {
		if err := of.Map.Madvise(r.Base, r.Len, advice); err != nil {
			if done == 0 {
				return 0, file.ToErrno(err)
			}
			break
		}
		done += r.Len
	}
	return done, 0
}

// mayAdvise checks whether the task may apply an advice to the memory of a process. Errors: ESRCH, EPERM, EINVAL.
func (t *Task) mayAdvise(p *Process, advice int) linux.Errno {
	_, errno := locked(t, func() (uint64, linux.Errno) {
		switch {
		case p.Ended():
			return 0, linux.ESRCH
		case p == t.process:
			return 0, 0
		case !t.mayInspect(p, true) || !t.creds().Has(linux.CAP_SYS_NICE):
			return 0, linux.EPERM
		case advice != mem.AdviseCold && advice != mem.AdvisePageOut && advice != mem.AdviseWillNeed:
			return 0, linux.EINVAL
		}
		return 0, 0
	})
	return errno
}

// processMrelease implements process_mrelease(2). A process that is about to end frees its memory without help, so a successful
// call does nothing. Errors: EINVAL, also for a process that is not about to end; EBADF, ESRCH.
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
