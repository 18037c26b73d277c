package children

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/unikernel/rt"
)

// This file serves the system calls of the program that concern other processes. Before the first child exists, and
// if a call concerns the program itself, the functions of the table of calls serve them.

func serveCalls() {
	for number, others := range map[int]func(c call.Caller, a call.Args) bool{
		linux.SYS_WAIT4:             always,
		linux.SYS_WAITID:            always,
		linux.SYS_PIDFD_OPEN:        always,
		linux.SYS_PIDFD_SEND_SIGNAL: ofProcess,
		linux.SYS_PIDFD_GETFD:       ofProcess,
		linux.SYS_KILL:              ofGroup,
		linux.SYS_RT_SIGQUEUEINFO:   ofOther,
		linux.SYS_PRLIMIT64:         ofOther,
		linux.SYS_SETPGID:           ofOther,
		linux.SYS_GETPGID:           ofOther,
		linux.SYS_GETSID:            ofOther,
		linux.SYS_GETPRIORITY:       secondOfOther,
		linux.SYS_SETPRIORITY:       secondOfOther,
		linux.SYS_SCHED_SETAFFINITY: ofOther,
		linux.SYS_SCHED_GETAFFINITY: ofOther,
		linux.SYS_GETRUSAGE:         ofChildren,
	} {
		rt.Serve(number, func(before call.Serve) call.Serve {
			return func(c call.Caller, a call.Args) (uint64, linux.Errno) {
				if h := host.Load(); h != nil && others(c, a) {
					return h.Call(c, number, a)
				}
				return before(c, a)
			}
		})
	}
}

// always is the condition for calls that only concern children.
func always(call.Caller, call.Args) bool { return true }

// ofOther reports whether the first argument is the ID of another process; 0 is the program.
func ofOther(c call.Caller, a call.Args) bool {
	pid := int(int32(a.A1))
	return pid != 0 && pid != c.Process.PID()
}

// ofGroup reports whether the first argument of kill(2) selects another process, or a process group (0).
func ofGroup(c call.Caller, a call.Args) bool { return int(int32(a.A1)) != c.Process.PID() }

// secondOfOther reports whether the second argument is the ID of another process.
func secondOfOther(c call.Caller, a call.Args) bool {
	return ofOther(c, call.Args{A1: a.A2})
}

// ofProcess reports whether the first argument is a descriptor of a process of package task.
func ofProcess(c call.Caller, a call.Args) bool {
	_, _, errno := c.Process.WatchedProcess(int(int32(a.A1)))
	return errno == 0
}

// ofChildren reports whether the first argument of getrusage(2) selects the children.
func ofChildren(_ call.Caller, a call.Args) bool { return int(int32(a.A1)) == linux.RUSAGE_CHILDREN }
