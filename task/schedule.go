package task

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
)

// Nice values, scheduling policies and CPU affinity are kept and reported, with the checks of Linux. They do not change
// the order in which threads run: the Go scheduler treats all alike.

// traits are attributes that a task inherits from its creator and that have no effect. System.mu guards all but slack, which belongs to
// the task.
type traits struct {
	nice, policy, priority int
	resetOnFork            bool
	affinity               []uint64 // bit sets of CPUs; nil: all
	io                     uint64   // ioprio_set(2)
	slack                  uint64   // PR_SET_TIMERSLACK
}

// inherited returns the traits of a child.
func (r traits) inherited() traits {
	if r.resetOnFork {
		r.policy, r.priority, r.nice, r.resetOnFork = linux.SCHED_OTHER, 0, max(r.nice, 0), false
	}
	return r
}

// scheduleCalls are the calls about scheduling.
var scheduleCalls = map[int]serveFunc{
	linux.SYS_GETPRIORITY:       getpriority,
	linux.SYS_SETPRIORITY:       setpriority,
	linux.SYS_SCHED_GETAFFINITY: schedGetaffinity,
	linux.SYS_SCHED_SETAFFINITY: schedSetaffinity,
	linux.SYS_SCHED_GETSCHEDULER: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) {
			policy := of.traits.policy
			if of.traits.resetOnFork {
				policy |= linux.SCHED_RESET_ON_FORK
			}
			return uint64(policy), 0
		})
	},
	linux.SYS_SCHED_SETSCHEDULER: func(t *Task, a call.Args) (uint64, linux.Errno) {
		priority, errno := memory{t}.word(a.A3)
		if errno != 0 {
			return 0, errno
		}
		return t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) {
			return t.schedule(of, number(a.A2)&^linux.SCHED_RESET_ON_FORK, int(int32(priority)), of.traits.nice, number(a.A2)&linux.SCHED_RESET_ON_FORK != 0)
		})
	},
	linux.SYS_SCHED_SETPARAM: func(t *Task, a call.Args) (uint64, linux.Errno) {
		priority, errno := memory{t}.word(a.A2)
		if errno != 0 {
			return 0, errno
		}
		return t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) {
			return t.schedule(of, of.traits.policy, int(int32(priority)), of.traits.nice, of.traits.resetOnFork)
		})
	},
	linux.SYS_SCHED_GETPARAM: func(t *Task, a call.Args) (uint64, linux.Errno) {
		priority, errno := t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) { return uint64(of.traits.priority), 0 })
		if errno != 0 {
			return 0, errno
		}
		return 0, memory{t}.setWord(a.A2, uint32(priority))
	},
	linux.SYS_SCHED_GET_PRIORITY_MAX: func(_ *Task, a call.Args) (uint64, linux.Errno) { return priorityBound(number(a.A1), 99) },
	linux.SYS_SCHED_GET_PRIORITY_MIN: func(_ *Task, a call.Args) (uint64, linux.Errno) { return priorityBound(number(a.A1), 1) },
	linux.SYS_SCHED_RR_GET_INTERVAL: func(t *Task, a call.Args) (uint64, linux.Errno) {
		const slice, roundRobin = 3_000_000, 100_000_000 // nanoseconds
		policy, errno := t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) { return uint64(of.traits.policy), 0 })
		if errno != 0 {
			return 0, errno
		}
		n := int64(slice)
		switch policy {
		case linux.SCHED_RR:
			n = roundRobin
		case linux.SCHED_FIFO:
			n = 0
		}
		return 0, t.put(a.A2, linux.SizeofTimespec, linux.NanoTimespec(n).Put)
	},
	linux.SYS_SCHED_GETATTR: schedGetattr,
	linux.SYS_SCHED_SETATTR: schedSetattr,
	linux.SYS_IOPRIO_GET: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if number(a.A1) != 1 { // a process; groups and users have no common value
			return 0, linux.EINVAL
		}
		return t.withTask(a.A2, func(of *Task) (uint64, linux.Errno) { return of.traits.io, 0 })
	},
	linux.SYS_IOPRIO_SET: func(t *Task, a call.Args) (uint64, linux.Errno) {
		const classShift, none, idle, levels = 13, 0, 3, 8
		class, level := a.A3>>classShift, a.A3&(1<<classShift-1)
		if number(a.A1) != 1 || class > idle || level >= levels || class == none && level != 0 {
			return 0, linux.EINVAL
		}
		return t.withTask(a.A2, func(of *Task) (uint64, linux.Errno) {
			if !t.mayAdjust(of) || class == 1 && !t.creds().Has(linux.CAP_SYS_ADMIN) {
				return 0, linux.EPERM
			}
			of.traits.io = a.A3
			return 0, 0
		})
	},
}

// withTask calls f with the task that has an ID, or the caller for 0, with System.mu held. Errors: EINVAL, ESRCH.
func (t *Task) withTask(id uint64, f func(*Task) (uint64, linux.Errno)) (uint64, linux.Errno) {
	n := number(id)
	if n < 0 {
		return 0, linux.EINVAL
	}
	return locked(t, func() (uint64, linux.Errno) {
		of := t
		if n != 0 {
			if of = t.process.system.tasks[family.PID(n)]; of == nil {
				return 0, linux.ESRCH
			}
		}
		return f(of)
	})
}

// mayAdjust reports whether the task may change the scheduling of another.
func (t *Task) mayAdjust(of *Task) bool {
	own, other := t.creds(), of.creds()
	return own.EUID == other.UID || own.EUID == other.EUID || own.Has(linux.CAP_SYS_NICE)
}

// Bounds of nice values. getpriority(2) returns the distance from niceTop.
const lowestNice, highestNice, niceTop = -20, 19, 20

// mayNice reports whether the task may give a task a nice value (RLIMIT_NICE). The caller holds System.mu.
func (t *Task) mayNice(of *Task, nice int) bool {
	return nice >= of.traits.nice || uint64(niceTop-nice) <= of.process.limits[linux.RLIMIT_NICE].Cur || t.creds().Has(linux.CAP_SYS_NICE)
}

// selected returns the tasks that getpriority(2) and setpriority(2) mean. The caller holds System.mu. Errors: EINVAL, ESRCH.
func (t *Task) selected(which int, who uint64) (all []*Task, errno linux.Errno) {
	s, id := t.process.system, family.PID(number(who))
	switch which {
	case linux.PRIO_PROCESS:
		if id == 0 {
			return []*Task{t}, 0
		}
		if of := s.tasks[id]; of != nil {
			all = append(all, of)
		}
	case linux.PRIO_PGRP:
		if id == 0 {
			id = t.process.node.Group
		}
		for _, p := range s.group(id) {
			all = append(all, p.tasks...)
		}
	case linux.PRIO_USER:
		uid := uint32(who)
		if uid == 0 {
			uid = t.creds().UID
		}
		for _, of := range s.tasks {
			if of.creds().UID == uid {
				all = append(all, of)
			}
		}
	default:
		return nil, linux.EINVAL
	}
	if len(all) == 0 {
		return nil, linux.ESRCH
	}
	return all, 0
}

// getpriority implements getpriority(2): it returns 20 minus the lowest nice value.
func getpriority(t *Task, a call.Args) (uint64, linux.Errno) {
	return locked(t, func() (uint64, linux.Errno) {
		all, errno := t.selected(number(a.A1), a.A2)
		if errno != 0 {
			return 0, errno
		}
		nice := highestNice
		for _, of := range all {
			nice = min(nice, of.traits.nice)
		}
		return uint64(niceTop - nice), 0
	})
}

// setpriority implements setpriority(2). Errors: EINVAL, ESRCH, EPERM for a task of another user, EACCES for a lower value.
func setpriority(t *Task, a call.Args) (uint64, linux.Errno) {
	nice := min(max(number(a.A3), lowestNice), highestNice)
	return locked(t, func() (uint64, linux.Errno) {
		all, errno := t.selected(number(a.A1), a.A2)
		for _, of := range all {
			switch {
			case !t.mayAdjust(of):
				errno = linux.EPERM
			case !t.mayNice(of, nice):
				errno = linux.EACCES
			default:
				of.traits.nice = nice
			}
		}
		return 0, errno
	})
}

// priorityBound returns a bound of the static priority of a policy. Errors: EINVAL.
func priorityBound(policy int, realTime uint64) (uint64, linux.Errno) {
	switch policy {
	case linux.SCHED_FIFO, linux.SCHED_RR:
		return realTime, 0
	case linux.SCHED_OTHER, linux.SCHED_BATCH, linux.SCHED_IDLE, linux.SCHED_DEADLINE:
		return 0, 0
	}
	return 0, linux.EINVAL
}

// schedule sets policy, priority and nice value of a task. The caller holds System.mu. Errors: EINVAL, EPERM.
func (t *Task) schedule(of *Task, policy, priority, nice int, reset bool) (uint64, linux.Errno) {
	realTime := policy == linux.SCHED_FIFO || policy == linux.SCHED_RR
	c := t.creds()
	limit := of.process.limits[linux.RLIMIT_RTPRIO].Cur
	switch {
	case !realTime && policy != linux.SCHED_OTHER && policy != linux.SCHED_BATCH && policy != linux.SCHED_IDLE,
		realTime != (priority != 0), priority < 0 || priority > 99:
		return 0, linux.EINVAL
	case c.Has(linux.CAP_SYS_NICE):
	case !t.mayAdjust(of),
		realTime && limit == 0 && policy != of.traits.policy,
		realTime && priority > of.traits.priority && uint64(priority) > limit,
		!t.mayNice(of, nice),
		of.traits.resetOnFork && !reset:
		return 0, linux.EPERM
	}
	of.traits.policy, of.traits.priority, of.traits.nice, of.traits.resetOnFork = policy, priority, nice, reset
	return 0, 0
}

// The first version of struct sched_attr (sched_setattr(2)).
const attrSize, attrFlags, attrNice, attrPriority, resetFlag = 48, 8, 16, 20, 1

// schedGetattr implements sched_getattr(2). Errors: EINVAL, ESRCH, EFAULT.
func schedGetattr(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A2 == 0 || a.A4 != 0 || uint32(a.A3) < attrSize || uint32(a.A3) > 4096 {
		return 0, linux.EINVAL
	}
	var r traits
	if _, errno := t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) { r = of.traits; return 0, 0 }); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	return 0, t.put(a.A2, attrSize, func(b []byte) {
		le.PutUint32(b, attrSize)
		le.PutUint32(b[4:], uint32(r.policy))
		le.PutUint64(b[attrFlags:], flag(r.resetOnFork)*resetFlag)
		if r.priority == 0 {
			le.PutUint32(b[attrNice:], uint32(int32(r.nice)))
		}
		le.PutUint32(b[attrPriority:], uint32(r.priority))
	})
}

// schedSetattr implements sched_setattr(2) without deadlines. Errors: EINVAL, E2BIG, EPERM, ESRCH, EFAULT.
func schedSetattr(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A2 == 0 || a.A3 != 0 {
		return 0, linux.EINVAL
	}
	size, errno := memory{t}.word(a.A2)
	switch {
	case errno != 0:
		return 0, errno
	case size == 0:
		size = attrSize
	case size < attrSize || size > 4096:
		return 0, linux.E2BIG
	}
	var b [attrSize]byte
	if errno := t.caller.Memory.Read(b[:], a.A2); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	flags := le.Uint64(b[attrFlags:])
	if flags&^resetFlag != 0 {
		return 0, linux.EINVAL
	}
	nice := min(max(int(int32(le.Uint32(b[attrNice:]))), lowestNice), highestNice)
	return t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) {
		return t.schedule(of, int(int32(le.Uint32(b[4:]))), int(int32(le.Uint32(b[attrPriority:]))), nice, flags != 0)
	})
}

// setWordBytes is the size of a word of a set of CPUs.
const setWordBytes = 8

// allCPUs returns the set of all CPUs.
func (s *System) allCPUs() []uint64 {
	set := make([]uint64, (s.config.CPUs+63)/64)
	for i := range s.config.CPUs {
		set[i/64] |= 1 << (i % 64)
	}
	return set
}

// affinityOf returns the CPUs that a task may use. The caller holds System.mu.
func (s *System) affinityOf(t *Task) []uint64 {
	if t.traits.affinity != nil {
		return t.traits.affinity
	}
	return s.allCPUs()
}

// schedGetaffinity implements sched_getaffinity(2). Errors: EINVAL, ESRCH, EFAULT.
func schedGetaffinity(t *Task, a call.Args) (uint64, linux.Errno) {
	s := t.process.system
	size := uint64((s.config.CPUs + 63) / 64 * setWordBytes)
	if a.A2%setWordBytes != 0 || a.A2 < size {
		return 0, linux.EINVAL
	}
	var set []uint64
	if _, errno := t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) { set = slices.Clone(s.affinityOf(of)); return 0, 0 }); errno != 0 {
		return 0, errno
	}
	var b []byte
	for _, w := range set {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return size, t.caller.Memory.Write(a.A3, b)
}

// schedSetaffinity implements sched_setaffinity(2). The set is reported, and every CPU still runs the thread. Errors:
// EINVAL if no CPU is left, EPERM, ESRCH, EFAULT.
func schedSetaffinity(t *Task, a call.Args) (uint64, linux.Errno) {
	all := t.process.system.allCPUs()
	b := make([]byte, len(all)*setWordBytes)
	if errno := t.caller.Memory.Read(b[:min(a.A2, uint64(len(b)))], a.A3); errno != 0 {
		return 0, errno
	}
	set, n := make([]uint64, len(all)), 0
	for i := range set {
		set[i] = all[i] & binary.LittleEndian.Uint64(b[i*setWordBytes:])
		n += bits.OnesCount64(set[i])
	}
	return t.withTask(a.A1, func(of *Task) (uint64, linux.Errno) {
		switch {
		case !t.mayAdjust(of):
			return 0, linux.EPERM
		case n == 0:
			return 0, linux.EINVAL
		}
		of.traits.affinity = set
		return 0, 0
	})
}
