// Package schedule implements the calls about scheduling (sched(7)). Nice values and scheduling policies are kept and
// reported, with the checks of Linux. They do not change the order in which threads run, because the Go scheduler gives all
// goroutines the same priority. CPU sets have an effect: see Thread.Bind.
package schedule

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"runtime"
	"slices"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/credential"
)

// Traits are scheduling attributes that a thread inherits from its creator. A lock of the caller
// guards all fields except Slack and restSlack, which belong to the thread.
type Traits struct {
	Nice, Policy, Priority int
	ResetOnFork            bool
	Slack                  uint64   // timer slack in nanoseconds (PR_SET_TIMERSLACK)
	restSlack              uint64   // timer slack that PR_SET_TIMERSLACK restores; 0: DefaultSlack
	affinity               []uint64 // bit set of the CPUs that the thread may use; nil: all
	io                     uint64   // value of ioprio_set(2)
}

// HasIOPriority reports whether ioprio_set(2) was called for the thread, or for the thread from which it inherits.
func (r *Traits) HasIOPriority() bool { return r.io != 0 }

// DefaultSlack is the timer slack of a new process, in nanoseconds. It has no effect: timers are not delayed.
const DefaultSlack = 50000

// SetSlack implements PR_SET_TIMERSLACK. 0 means the slack that the creator of the thread had.
func (r *Traits) SetSlack(n uint64) {
	if r.Slack = n; n == 0 || n >= 1<<63 {
		r.Slack = cmp.Or(r.restSlack, DefaultSlack)
	}
}

// Affinity returns the bit set of the CPUs that the thread may use. cpus is the number of CPUs of the machine.
func (r *Traits) Affinity(cpus int) []uint64 {
	if r.affinity != nil {
		return r.affinity
	}
	return AllCPUs(cpus)
}

// Bound returns the CPUs that the thread may use as a bit set; 0 means all. A machine has at most 64 CPUs.
func (r *Traits) Bound() uint64 {
	if r.affinity == nil {
		return 0
	}
	return r.affinity[0]
}

// AllCPUs returns the set of all CPUs.
func AllCPUs(cpus int) []uint64 {
	set := make([]uint64, (cpus+63)/64)
	for i := range cpus {
		set[i/64] |= 1 << (i % 64)
	}
	return set
}

// Inherited returns the scheduling traits that a child gets from a process with the traits r.
func (r Traits) Inherited() Traits {
	if r.ResetOnFork {
		r.Policy, r.Priority, r.Nice, r.ResetOnFork = linux.SCHED_OTHER, 0, max(r.Nice, 0), false
	}
	r.restSlack = r.Slack
	return r
}

// Thread is a thread with traits.
type Thread interface {
	Traits() *Traits
	Identity() *credential.Set
	// Limit returns the soft limit of a resource. The caller holds the lock that guards Traits.
	Limit(resource int) uint64
	// Bind makes the thread run only on the CPUs that its traits allow (Bound). When Bind returns, no other CPU runs the
	// thread in ring 3. The caller holds the same lock.
	Bind()
}

// Caller is the thread that makes a call.
type Caller interface {
	Thread
	Memory() call.Memory
	// With calls f with the thread that has an ID, or with the calling thread for 0. The lock that guards Traits is held
	// during the call. Errors: EINVAL, ESRCH.
	With(id uint64, f func(Thread) (uint64, linux.Errno)) (uint64, linux.Errno)
	// Select calls f with the threads that the arguments of getpriority(2) select. The lock that guards Traits is held
	// during the call. Errors: EINVAL, ESRCH.
	Select(which int, who uint64, f func([]Thread) (uint64, linux.Errno)) (uint64, linux.Errno)
	// CPUs returns the number of CPUs, and CPU the number of the CPU on which the caller was in ring 3 last.
	CPUs() int
	CPU() int
	// Rest lets other threads with a CPU set use the CPU of the caller, which is about to yield.
	Rest()
}

// Serve executes a call.
type Serve func(t Caller, a call.Args) (uint64, linux.Errno)

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

func flag(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// parameter reads a struct sched_param. Errors: EINVAL for a null pointer, EFAULT.
func parameter(t Caller, addr uint64) (uint32, linux.Errno) {
	if addr == 0 {
		return 0, linux.EINVAL
	}
	return word(t, addr)
}

// word reads a 32-bit word from the memory of the caller. Errors: EFAULT.
func word(t Caller, addr uint64) (uint32, linux.Errno) {
	var b [4]byte
	errno := t.Memory().Read(b[:], addr)
	return binary.LittleEndian.Uint32(b[:]), errno
}

// put writes a structure to the memory of the caller, unless the address is 0. Errors: EFAULT.
func put(t Caller, addr uint64, size int, encode func([]byte)) linux.Errno {
	if addr == 0 {
		return 0
	}
	b := make([]byte, size)
	encode(b)
	return t.Memory().Write(addr, b)
}

// Calls are the calls about scheduling, by number.
var Calls = map[int]Serve{
	linux.SYS_GETPRIORITY:       getpriority,
	linux.SYS_SETPRIORITY:       setpriority,
	linux.SYS_SCHED_GETAFFINITY: schedGetaffinity,
	linux.SYS_SCHED_SETAFFINITY: schedSetaffinity,
	linux.SYS_GETCPU:            getcpu,
	linux.SYS_SCHED_YIELD: func(t Caller, _ call.Args) (uint64, linux.Errno) {
		t.Rest()
		runtime.Gosched()
		return 0, 0
	},
	linux.SYS_SCHED_GETSCHEDULER: func(t Caller, a call.Args) (uint64, linux.Errno) {
		return with(t, a.A1, func(of Thread) (uint64, linux.Errno) {
			policy := of.Traits().Policy
			if of.Traits().ResetOnFork {
				policy |= linux.SCHED_RESET_ON_FORK
			}
			return uint64(policy), 0
		})
	},
	linux.SYS_SCHED_SETSCHEDULER: func(t Caller, a call.Args) (uint64, linux.Errno) {
		priority, errno := parameter(t, a.A3)
		if errno != 0 {
			return 0, errno
		}
		return with(t, a.A1, func(of Thread) (uint64, linux.Errno) {
			return set(t, of, number(a.A2)&^linux.SCHED_RESET_ON_FORK, int(int32(priority)), of.Traits().Nice, number(a.A2)&linux.SCHED_RESET_ON_FORK != 0)
		})
	},
	linux.SYS_SCHED_SETPARAM: func(t Caller, a call.Args) (uint64, linux.Errno) {
		priority, errno := parameter(t, a.A2)
		if errno != 0 {
			return 0, errno
		}
		return with(t, a.A1, func(of Thread) (uint64, linux.Errno) {
			return set(t, of, of.Traits().Policy, int(int32(priority)), of.Traits().Nice, of.Traits().ResetOnFork)
		})
	},
	linux.SYS_SCHED_GETPARAM: func(t Caller, a call.Args) (uint64, linux.Errno) {
		if a.A2 == 0 {
			return 0, linux.EINVAL
		}
		priority, errno := with(t, a.A1, func(of Thread) (uint64, linux.Errno) { return uint64(of.Traits().Priority), 0 })
		if errno != 0 {
			return 0, errno
		}
		return 0, t.Memory().Write(a.A2, binary.LittleEndian.AppendUint32(nil, uint32(priority)))
	},
	linux.SYS_SCHED_GET_PRIORITY_MAX: func(_ Caller, a call.Args) (uint64, linux.Errno) { return priorityBound(number(a.A1), 99) },
	linux.SYS_SCHED_GET_PRIORITY_MIN: func(_ Caller, a call.Args) (uint64, linux.Errno) { return priorityBound(number(a.A1), 1) },
	linux.SYS_SCHED_RR_GET_INTERVAL: func(t Caller, a call.Args) (uint64, linux.Errno) {
		const slice, roundRobin = 3_000_000, 100_000_000 // time slices in nanoseconds, for normal policies and for SCHED_RR
		policy, errno := with(t, a.A1, func(of Thread) (uint64, linux.Errno) { return uint64(of.Traits().Policy), 0 })
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
		b := make([]byte, linux.SizeofTimespec)
		linux.NanoTimespec(n).Put(b)
		return 0, t.Memory().Write(a.A2, b)
	},
	linux.SYS_SCHED_GETATTR: schedGetattr,
	linux.SYS_SCHED_SETATTR: schedSetattr,
	linux.SYS_IOPRIO_GET: func(t Caller, a call.Args) (uint64, linux.Errno) {
		if number(a.A1) != 1 { // only a process can be selected; groups and users have no common value
			return 0, linux.EINVAL
		}
		return with(t, a.A2, func(of Thread) (uint64, linux.Errno) { return of.Traits().io, 0 })
	},
	linux.SYS_IOPRIO_SET: func(t Caller, a call.Args) (uint64, linux.Errno) {
		const classShift, none, idle, levels = 13, 0, 3, 8
		class, level := a.A3>>classShift, a.A3&(1<<classShift-1)
		if number(a.A1) != 1 || class > idle || level >= levels || class == none && level != 0 {
			return 0, linux.EINVAL
		}
		return with(t, a.A2, func(of Thread) (uint64, linux.Errno) {
			if !mayAdjust(t, of) || class == 1 && !t.Identity().Has(linux.CAP_SYS_ADMIN) {
				return 0, linux.EPERM
			}
			of.Traits().io = a.A3
			return 0, 0
		})
	},
}

// mayAdjust reports whether thread t may change the scheduling of another thread (the parameter of).
func mayAdjust(t, of Thread) bool {
	own, other := t.Identity(), of.Identity()
	return own.EUID == other.UID || own.EUID == other.EUID || own.Has(linux.CAP_SYS_NICE)
}

// Bounds of nice values. getpriority(2) returns niceTop minus the nice value.
const lowestNice, highestNice, niceTop = -20, 19, 20

// mayNice reports whether thread t may set the nice value of another thread, the
// parameter of (RLIMIT_NICE). The caller holds the lock that guards Traits.
func mayNice(t, of Thread, nice int) bool {
	return nice >= of.Traits().Nice || uint64(niceTop-nice) <= of.Limit(linux.RLIMIT_NICE) || t.Identity().Has(linux.CAP_SYS_NICE)
}

// getpriority implements getpriority(2): it returns 20 minus the lowest nice value.
func getpriority(t Caller, a call.Args) (uint64, linux.Errno) {
	return selected(t, number(a.A1), a.A2, func(all []Thread) (uint64, linux.Errno) {
		nice := highestNice
		for _, of := range all {
			nice = min(nice, of.Traits().Nice)
		}
		return uint64(niceTop - nice), 0
	})
}

// setpriority implements setpriority(2). Errors: EINVAL, ESRCH, EPERM for a task of another user, EACCES for a lower value.
func setpriority(t Caller, a call.Args) (uint64, linux.Errno) {
	nice := min(max(number(a.A3), lowestNice), highestNice)
	return selected(t, number(a.A1), a.A2, func(all []Thread) (_ uint64, errno linux.Errno) {
		for _, of := range all {
			switch {
			case !mayAdjust(t, of):
				errno = linux.EPERM
			case !mayNice(t, of, nice):
				errno = linux.EACCES
			default:
				of.Traits().Nice = nice
			}
		}
		return 0, errno
	})
}

// priorityBound returns the lowest or highest static priority of a policy: realTime for a real-time policy, otherwise 0.
// Errors: EINVAL.
func priorityBound(policy int, realTime uint64) (uint64, linux.Errno) {
	switch policy {
	case linux.SCHED_FIFO, linux.SCHED_RR:
		return realTime, 0
	case linux.SCHED_OTHER, linux.SCHED_BATCH, linux.SCHED_IDLE, linux.SCHED_DEADLINE:
		return 0, 0
	}
	return 0, linux.EINVAL
}

// set sets policy, priority and nice value of a thread. The caller holds the lock that guards Traits. Errors: EINVAL, EPERM.
func set(t, of Thread, policy, priority, nice int, reset bool) (uint64, linux.Errno) {
	realTime := policy == linux.SCHED_FIFO || policy == linux.SCHED_RR
	c := t.Identity()
	limit := of.Limit(linux.RLIMIT_RTPRIO)
	switch {
	case !realTime && policy != linux.SCHED_OTHER && policy != linux.SCHED_BATCH && policy != linux.SCHED_IDLE,
		realTime != (priority != 0), priority < 0 || priority > 99:
		return 0, linux.EINVAL
	case c.Has(linux.CAP_SYS_NICE):
	case !mayAdjust(t, of),
		realTime && limit == 0 && policy != of.Traits().Policy,
		realTime && priority > of.Traits().Priority && uint64(priority) > limit,
		!mayNice(t, of, nice),
		of.Traits().ResetOnFork && !reset:
		return 0, linux.EPERM
	}
	of.Traits().Policy, of.Traits().Priority, of.Traits().Nice, of.Traits().ResetOnFork = policy, priority, nice, reset
	return 0, 0
}

// Sizes, offsets and the flag of the first version of struct sched_attr (sched_setattr(2)).
const attrSize, attrFlags, attrNice, attrPriority, resetFlag = 48, 8, 16, 20, 1

// schedGetattr implements sched_getattr(2). Errors: EINVAL, ESRCH, EFAULT.
func schedGetattr(t Caller, a call.Args) (uint64, linux.Errno) {
	if a.A2 == 0 || a.A4 != 0 || uint32(a.A3) < attrSize || uint32(a.A3) > 4096 {
		return 0, linux.EINVAL
	}
	var r Traits
	if _, errno := with(t, a.A1, func(of Thread) (uint64, linux.Errno) { r = *of.Traits(); return 0, 0 }); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	return 0, put(t, a.A2, attrSize, func(b []byte) {
		le.PutUint32(b, attrSize)
		le.PutUint32(b[4:], uint32(r.Policy))
		le.PutUint64(b[attrFlags:], flag(r.ResetOnFork)*resetFlag)
		if r.Priority == 0 {
			le.PutUint32(b[attrNice:], uint32(int32(r.Nice)))
		}
		le.PutUint32(b[attrPriority:], uint32(r.Priority))
	})
}

// schedSetattr implements sched_setattr(2) without deadlines. Errors: EINVAL, E2BIG, EPERM, ESRCH, EFAULT.
func schedSetattr(t Caller, a call.Args) (uint64, linux.Errno) {
	if a.A2 == 0 || a.A3 != 0 {
		return 0, linux.EINVAL
	}
	size, errno := word(t, a.A2)
	switch {
	case errno != 0:
		return 0, errno
	case size == 0:
		size = attrSize
	case size < attrSize || size > 4096:
		return 0, linux.E2BIG
	}
	var b [attrSize]byte
	if errno := t.Memory().Read(b[:], a.A2); errno != 0 {
		return 0, errno
	}
	le := binary.LittleEndian
	flags := le.Uint64(b[attrFlags:])
	if flags&^resetFlag != 0 {
		return 0, linux.EINVAL
	}
	nice := min(max(int(int32(le.Uint32(b[attrNice:]))), lowestNice), highestNice)
	return with(t, a.A1, func(of Thread) (uint64, linux.Errno) {
		return set(t, of, int(int32(le.Uint32(b[4:]))), int(int32(le.Uint32(b[attrPriority:]))), nice, flags != 0)
	})
}

// setWordBytes is the size of a word of a set of CPUs.
const setWordBytes = 8

// schedGetaffinity implements sched_getaffinity(2). Errors: EINVAL, ESRCH, EFAULT.
func schedGetaffinity(t Caller, a call.Args) (uint64, linux.Errno) {
	size := uint64((t.CPUs() + 63) / 64 * setWordBytes)
	if a.A2%setWordBytes != 0 || a.A2 < size {
		return 0, linux.EINVAL
	}
	if number(a.A1) < 0 { // a negative ID selects no process; the other calls return EINVAL for it
		return 0, linux.ESRCH
	}
	var set []uint64
	if _, errno := with(t, a.A1, func(of Thread) (uint64, linux.Errno) { set = slices.Clone(of.Traits().Affinity(t.CPUs())); return 0, 0 }); errno != 0 {
		return 0, errno
	}
	var b []byte
	for _, w := range set {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return size, t.Memory().Write(a.A3, b)
}

// schedSetaffinity implements sched_setaffinity(2). Errors: EINVAL if the set has no CPU of the machine, EPERM, ESRCH, EFAULT.
func schedSetaffinity(t Caller, a call.Args) (uint64, linux.Errno) {
	all := AllCPUs(t.CPUs())
	b := make([]byte, len(all)*setWordBytes)
	if errno := t.Memory().Read(b[:min(a.A2, uint64(len(b)))], a.A3); errno != 0 {
		return 0, errno
	}
	set, n := make([]uint64, len(all)), 0
	for i := range set {
		set[i] = all[i] & binary.LittleEndian.Uint64(b[i*setWordBytes:])
		n += bits.OnesCount64(set[i])
	}
	if number(a.A1) < 0 {
		return 0, linux.ESRCH
	}
	return with(t, a.A1, func(of Thread) (uint64, linux.Errno) {
		switch {
		case !mayAdjust(t, of):
			return 0, linux.EPERM
		case n == 0:
			return 0, linux.EINVAL
		}
		if of.Traits().affinity = set; slices.Equal(set, all) {
			of.Traits().affinity = nil
		}
		of.Bind()
		return 0, 0
	})
}

// getcpu implements getcpu(2). The node is always 0. Errors: EFAULT.
func getcpu(t Caller, a call.Args) (uint64, linux.Errno) {
	for i, addr := range [...]uint64{a.A1, a.A2} {
		value := uint32(t.CPU()) * uint32(1-i)
		if errno := put(t, addr, 4, func(b []byte) { binary.LittleEndian.PutUint32(b, value) }); errno != 0 {
			return 0, errno
		}
	}
	return 0, 0
}
