package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/bpf"
	"loam/posix/call"
	"loam/task/seccomp"
	"loam/task/signal"
)

// The filters of system calls that threads set for themselves: see package seccomp. A thread without filters pays nothing: see
// attention.

// filterCalls are the calls that set filters.
var filterCalls = map[int]serveFunc{linux.SYS_SECCOMP: seccompCall}

// inherit gives a new thread the filters of the thread that creates it. The caller holds System.mu.
func (t *Task) inherit(of *Task) { t.setFilters(of.filters.Load()) }

func (t *Task) setFilters(f *seccomp.Filter) {
	t.filters.Store(f)
	if f != nil {
		t.alerted.filter()
	}
}

// seccompCall implements seccomp(2) without notifications to another process. Errors: EINVAL, EACCES, EFAULT, ENOMEM, EOPNOTSUPP.
func seccompCall(t *Task, a call.Args) (uint64, linux.Errno) {
	switch uint32(a.A1) {
	case linux.SECCOMP_SET_MODE_STRICT:
		if a.A2 != 0 || a.A3 != 0 {
			return 0, linux.EINVAL
		}
		return t.setStrict()
	case linux.SECCOMP_SET_MODE_FILTER:
		return t.addFilter(uint32(a.A2), a.A3)
	case linux.SECCOMP_GET_ACTION_AVAIL:
		if a.A2 != 0 {
			return 0, linux.EINVAL
		}
		action, errno := memory{t}.word(a.A3)
		if errno != 0 {
			return 0, errno
		}
		switch action {
		case linux.SECCOMP_RET_KILL_PROCESS, linux.SECCOMP_RET_KILL_THREAD, linux.SECCOMP_RET_TRAP, linux.SECCOMP_RET_ERRNO,
			linux.SECCOMP_RET_TRACE, linux.SECCOMP_RET_LOG, linux.SECCOMP_RET_ALLOW:
			return 0, 0
		}
		return 0, linux.EOPNOTSUPP
	}
	return 0, linux.EINVAL
}

// prctlSeccomp implements PR_SET_SECCOMP and PR_GET_SECCOMP.
func (t *Task) prctlSeccomp(a call.Args) (uint64, linux.Errno) {
	if a.A1 == linux.PR_GET_SECCOMP {
		mode, _ := t.filters.Load().Mode()
		return uint64(mode), 0
	}
	switch a.A2 {
	case linux.SECCOMP_MODE_STRICT:
		return t.setStrict()
	case linux.SECCOMP_MODE_FILTER:
		return t.addFilter(0, a.A3)
	}
	return 0, linux.EINVAL
}

// setStrict allows the thread only read, write, exit and sigreturn. Errors: EINVAL with filters.
func (t *Task) setStrict() (uint64, linux.Errno) {
	return locked(t, func() (uint64, linux.Errno) {
		if f := t.filters.Load(); f != nil && !f.IsStrict() {
			return 0, linux.EINVAL
		}
		t.setFilters(seccomp.Strict())
		return 0, 0
	})
}

// addFilter adds a filter, a struct sock_fprog in memory. With SECCOMP_FILTER_FLAG_TSYNC all threads get it, or the ID of
// one that cannot is returned.
func (t *Task) addFilter(flags uint32, at uint64) (uint64, linux.Errno) {
	const known = linux.SECCOMP_FILTER_FLAG_TSYNC | linux.SECCOMP_FILTER_FLAG_LOG | linux.SECCOMP_FILTER_FLAG_SPEC_ALLOW |
		linux.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	if flags&^known != 0 {
		return 0, linux.EINVAL
	}
	program, errno := t.filterProgram(at)
	if errno != 0 {
		return 0, errno
	}
	return locked(t, func() (uint64, linux.Errno) {
		next, errno := t.filters.Load().Add(program)
		if errno != 0 {
			return 0, errno
		}
		if flags&linux.SECCOMP_FILTER_FLAG_TSYNC != 0 {
			if id := t.synchronize(next); id != 0 {
				if flags&linux.SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0 {
					return 0, linux.ESRCH
				}
				return id, 0
			}
		}
		t.setFilters(next)
		return 0, 0
	})
}

// synchronize sets the filter chain of all other threads of the process, whose chains it must extend. If a thread has
// a chain that it does not extend, synchronize changes nothing and returns the thread's ID. The caller holds
// System.mu.
func (t *Task) synchronize(next *seccomp.Filter) uint64 {
	for _, o := range t.process.tasks {
		f := o.filters.Load()
		if o != t && (f.IsStrict() || !f.Descends(t.filters.Load())) {
			return uint64(o.id)
		}
	}
	for _, o := range t.process.tasks {
		if o == t {
			continue
		}
		o.setFilters(next)
		if t.creds().NoNewPrivs {
			c := *o.creds()
			c.NoNewPrivs = true
			o.caller.Process.ChangeIdentity(c)
		}
	}
	return 0
}

// filterProgram reads and checks a program. Errors: EFAULT, EINVAL; EACCES for a thread that may get privileges by execve and
// has no CAP_SYS_ADMIN.
func (t *Task) filterProgram(at uint64) (bpf.Program, linux.Errno) {
	const header = 16
	le := binary.LittleEndian
	b := make([]byte, header)
	if errno := t.caller.Memory.Read(b, at); errno != 0 {
		return nil, errno
	}
	n := int(le.Uint16(b))
	switch {
	case n == 0 || n > bpf.MaxLen:
		return nil, linux.EINVAL
	case !t.creds().NoNewPrivs && !t.creds().Has(linux.CAP_SYS_ADMIN):
		return nil, linux.EACCES
	}
	text := make([]byte, n*seccomp.Instruction)
	if errno := t.caller.Memory.Read(text, le.Uint64(b[8:])); errno != 0 {
		return nil, errno
	}
	return seccomp.Parse(text)
}

// filterCall filters a call. It returns the number of the call to execute, and false for none.
func (t *Task) filterCall(number uint64) (uint64, bool) {
	f := t.filters.Load()
	switch {
	case f == nil:
		return number, true
	case f.IsStrict():
		if seccomp.StrictAllows(number) {
			return number, true
		}
		t.filterKill(linux.SIGKILL, false)
		return 0, false
	}
	for traced := false; ; traced = true {
		r := f.Verdict(seccomp.Data(number, t.thread.Registers()))
		data := r & linux.SECCOMP_RET_DATA
		frame := t.thread.Registers()
		switch r & linux.SECCOMP_RET_ACTION_FULL {
		case linux.SECCOMP_RET_ALLOW, linux.SECCOMP_RET_LOG:
			return number, true
		case linux.SECCOMP_RET_ERRNO:
			const most = 4095
			frame.AX = -uint64(min(data, most))
			return 0, false
		case linux.SECCOMP_RET_TRAP:
			frame.AX = number
			t.force(signal.Info{
				Signal: signal.System, Code: codeSeccomp, Errno: int32(data), Addr: frame.IP,
				Value: number&(1<<32-1) | linux.AUDIT_ARCH_X86_64<<32,
			})
			return 0, false
		case linux.SECCOMP_RET_TRACE:
			if traced {
				return number, true
			}
			var ok bool
			if number, ok = t.filterTrace(number, data); !ok {
				return 0, false
			}
		case linux.SECCOMP_RET_KILL_THREAD:
			t.filterKill(linux.SIGSYS, false)
			return 0, false
		default:
			t.filterKill(linux.SIGSYS, true)
			return 0, false
		}
	}
}

// codeSeccomp is the si_code of a SIGSYS by a filter, SYS_SECCOMP.
const codeSeccomp = 1

// filterKill ends the thread, or the process if it has no other thread or whole is set.
func (t *Task) filterKill(n int32, whole bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole || len(t.process.tasks) == 1 {
		t.process.end(n)
		return
	}
	t.leaving, t.exited, t.exitCode = true, true, n
}

// filterTrace stops the thread for its tracer (SECCOMP_RET_TRACE), which may change the call. Without a tracer that asked for
// it, the call fails with ENOSYS.
func (t *Task) filterTrace(number uint64, data uint32) (uint64, bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	f, noCall := t.thread.Registers(), linux.ENOSYS
	f.AX = -uint64(noCall)
	x := t.traced
	if x == nil || x.Options&linux.PTRACE_O_TRACESECCOMP == 0 {
		return 0, false
	}
	x.InCall, x.Number, x.Filtered, x.Message = true, number, true, uint64(data)
	code := eventCode(linux.PTRACE_EVENT_SECCOMP)
	t.traceStop(code, t.stopInfo(linux.SIGTRAP, code))
	x.InCall = x.calls
	return x.Number, int64(x.Number) >= 0 && !t.process.ending
}
