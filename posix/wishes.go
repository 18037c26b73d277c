package posix

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Scheduling classes and other hints that a process can set. They are checked and stored as on Linux, and have no effect:
// Loam schedules all goroutines and threads alike, and its disks serve requests in order. On Linux, each thread has these
// values; here the process has them.

// wishes holds the scheduling hints that a process has set, such as its nice value. They have no effect.
type wishes struct {
	ioPriority atomic.Int32 // ioprio_set(2)
	policy     atomic.Int32 // sched_setscheduler(2)
	slack      atomic.Int64 // PR_SET_TIMERSLACK minus standardSlack, so that 0 is the default
	reaper     atomic.Int32 // PR_SET_CHILD_SUBREAPER
	noHuge     atomic.Int32 // PR_SET_THP_DISABLE
}

// standardSlack is the default timer slack of a process, in nanoseconds (PR_SET_TIMERSLACK).
const standardSlack = 50000

// itself returns 0 if pid is 0 or the ID of the process. Errors: EINVAL for a negative ID, ESRCH for another process.
func (p *Process) itself(pid int32) Errno {
	switch {
	case pid < 0:
		return linux.EINVAL
	case pid != 0 && pid != p.credentials.PID:
		return linux.ESRCH
	}
	return 0
}

// Values of ioprio_set(2): targets, classes and priorities.
const (
	ioprioProcess, ioprioUser              = 1, 3
	ioprioNone, ioprioRealTime, ioprioIdle = 0, 1, 3
	ioprioBest                             = 2
	ioprioShift, ioprioMask, ioprioLevels  = 13, 1<<13 - 1, 8
)

// IOPriority implements ioprio_get(2) for the process. Errors: EINVAL, ESRCH.
func (p *Process) IOPriority(which int, who int32) (int, Errno) {
	if which < ioprioProcess || which > ioprioUser {
		return -1, linux.EINVAL
	}
	if who != 0 && (which != ioprioProcess || who != p.credentials.PID) {
		return -1, linux.ESRCH
	}
	return int(p.wishes.ioPriority.Load()), 0
}

// SetIOPriority implements ioprio_set(2) for the process. Errors: EINVAL, ESRCH; EPERM for the real-time class.
func (p *Process) SetIOPriority(which int, who int32, priority int) Errno {
	const classes = 7 // the class has three bits; Linux ignores the bits above
	switch class, level := priority>>ioprioShift&classes, priority&ioprioMask; {
	case class == ioprioRealTime:
		return linux.EPERM
	case class == ioprioNone && level != 0, class == ioprioBest && level >= ioprioLevels, class < ioprioNone || class > ioprioIdle:
		return linux.EINVAL
	}
	if _, errno := p.IOPriority(which, who); errno != 0 {
		return errno
	}
	p.wishes.ioPriority.Store(int32(priority))
	return 0
}

// Policies of sched_setscheduler(2).
const (
	schedOther, schedFIFO, schedRR, schedBatch, schedIdle, schedDeadline = 0, 1, 2, 3, 5, 6
)

// SchedulerPriorities returns the lowest and the highest priority of a policy (sched_get_priority_max(2)). Errors: EINVAL.
func SchedulerPriorities(policy int) (lowest, highest int, errno Errno) {
	switch policy {
	case schedOther, schedBatch, schedIdle, schedDeadline:
		return 0, 0, 0
	case schedFIFO, schedRR:
		return 1, 99, 0
	}
	return 0, 0, linux.EINVAL
}

// Scheduler implements sched_getscheduler(2) for the process. Errors: EINVAL, ESRCH.
func (p *Process) Scheduler(pid int32) (int, Errno) {
	if errno := p.itself(pid); errno != 0 {
		return -1, errno
	}
	return int(p.wishes.policy.Load()), 0
}

// SetScheduler implements sched_setscheduler(2) for the process. Errors: EINVAL, ESRCH; EPERM for real-time policies.
func (p *Process) SetScheduler(pid int32, policy, priority int) Errno {
	lowest, highest, errno := SchedulerPriorities(policy)
	switch {
	case errno != 0:
		return errno
	case priority < lowest || priority > highest || policy == schedDeadline:
		return linux.EINVAL
	}
	if errno := p.itself(pid); errno != 0 {
		return errno
	}
	if highest > 0 {
		return linux.EPERM
	}
	p.wishes.policy.Store(int32(policy))
	return 0
}

// pidFD is a pidfd of the process itself (pidfd_open(2)). It never becomes readable, because that would require the end of
// the process.
type pidFD struct{ q file.Queue }

func (f *pidFD) Queue() *file.Queue        { return &f.q }
func (f *pidFD) Events() Events            { return 0 }
func (f *pidFD) Read([]byte) (int, Errno)  { return 0, linux.EINVAL }
func (f *pidFD) Write([]byte) (int, Errno) { return 0, linux.EINVAL }
func (f *pidFD) Close()                    {}
func (f *pidFD) Mode() uint32              { return uint32(fs.Regular) | 0o700 }

// PidFDOpen implements pidfd_open(2) for the process itself. Errors: EINVAL, ESRCH, EMFILE.
func (p *Process) PidFDOpen(pid int32, flags int) (int, Errno) {
	const thread = linux.O_EXCL // PIDFD_THREAD has the value of O_EXCL
	switch {
	case flags&^(linux.O_NONBLOCK|thread) != 0 || pid <= 0:
		return -1, linux.EINVAL
	case pid != p.credentials.PID:
		return -1, linux.ESRCH
	}
	return p.install(&pidFD{}, flags&linux.O_NONBLOCK|linux.O_CLOEXEC)
}

// IsPidFD returns EBADF unless fd is a descriptor of PidFDOpen.
func (p *Process) IsPidFD(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ok := o.File.(*pidFD); !ok {
		return linux.EBADF
	}
	return 0
}

// PidFDGet implements pidfd_getfd(2) for the process itself. Errors: EINVAL, EBADF, EMFILE.
func (p *Process) PidFDGet(fd, target, flags int) (int, Errno) {
	if flags != 0 {
		return -1, linux.EINVAL
	}
	if errno := p.IsPidFD(fd); errno != 0 {
		return -1, errno
	}
	return p.Fcntl(target, linux.F_DUPFD_CLOEXEC, 0)
}
