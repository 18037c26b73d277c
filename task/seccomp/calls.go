package seccomp

import (
	"encoding/binary"
	"iter"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/posix/bpf"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/signal"
)

// Thread is a thread with its seccomp filters.
type Thread interface {
	ID() int32
	// Filters returns the chain of filters, and SetFilters replaces it. The caller of SetFilters holds the lock of all chains.
	Filters() *Filter
	SetFilters(*Filter)
	// ForbidPrivileges sets no_new_privs (prctl(2)).
	ForbidPrivileges()
}

// Caller is a thread that makes a system call.
type Caller interface {
	Thread
	Memory() call.Memory
	Identity() *credential.Set
	// Locked calls f with the lock of the chains of all threads. Others returns the other threads of the process; it is called
	// with the lock.
	Locked(f func() (uint64, linux.Errno)) (uint64, linux.Errno)
	Others() iter.Seq[Thread]
	// Registers returns the registers at the call.
	Registers() *amd64.Frame
	// Force sends the thread a signal that its call has caused.
	Force(signal.Info)
	// Report reports the call to a tracer with data of the filter. It returns the number of the call to execute, and false for none.
	Report(number uint64, data uint32) (uint64, bool)
	// Kill ends the thread by a signal, or the process if it has no other thread or whole is set.
	Kill(n int32, whole bool)
}

// Call implements seccomp(2) without notifications to another process. Errors: EINVAL, EACCES, EFAULT, ENOMEM, EOPNOTSUPP.
func Call(t Caller, a call.Args) (uint64, linux.Errno) {
	switch uint32(a.A1) {
	case linux.SECCOMP_SET_MODE_STRICT:
		if a.A2 != 0 || a.A3 != 0 {
			return 0, linux.EINVAL
		}
		return setStrict(t)
	case linux.SECCOMP_SET_MODE_FILTER:
		return addFilter(t, uint32(a.A2), a.A3)
	case linux.SECCOMP_GET_ACTION_AVAIL:
		if a.A2 != 0 {
			return 0, linux.EINVAL
		}
		var b [4]byte
		if errno := t.Memory().Read(b[:], a.A3); errno != 0 {
			return 0, errno
		}
		switch binary.LittleEndian.Uint32(b[:]) {
		case linux.SECCOMP_RET_KILL_PROCESS, linux.SECCOMP_RET_KILL_THREAD, linux.SECCOMP_RET_TRAP, linux.SECCOMP_RET_ERRNO,
			linux.SECCOMP_RET_TRACE, linux.SECCOMP_RET_LOG, linux.SECCOMP_RET_ALLOW:
			return 0, 0
		}
		return 0, linux.EOPNOTSUPP
	}
	return 0, linux.EINVAL
}

// Prctl implements PR_SET_SECCOMP and PR_GET_SECCOMP.
func Prctl(t Caller, a call.Args) (uint64, linux.Errno) {
	if a.A1 == linux.PR_GET_SECCOMP {
		mode, _ := t.Filters().Mode()
		return uint64(mode), 0
	}
	switch a.A2 {
	case linux.SECCOMP_MODE_STRICT:
		return setStrict(t)
	case linux.SECCOMP_MODE_FILTER:
		return addFilter(t, 0, a.A3)
	}
	return 0, linux.EINVAL
}

// setStrict allows the thread only read, write, exit and sigreturn. Errors: EINVAL with filters.
func setStrict(t Caller) (uint64, linux.Errno) {
	return t.Locked(func() (uint64, linux.Errno) {
		if f := t.Filters(); f != nil && !f.IsStrict() {
			return 0, linux.EINVAL
		}
		t.SetFilters(Strict())
		return 0, 0
	})
}

// addFilter adds a filter, a struct sock_fprog in memory. With SECCOMP_FILTER_FLAG_TSYNC all threads get it, or the ID of
// one that cannot is returned.
func addFilter(t Caller, flags uint32, at uint64) (uint64, linux.Errno) {
	const known = linux.SECCOMP_FILTER_FLAG_TSYNC | linux.SECCOMP_FILTER_FLAG_LOG | linux.SECCOMP_FILTER_FLAG_SPEC_ALLOW |
		linux.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	if flags&^known != 0 {
		return 0, linux.EINVAL
	}
	program, errno := readProgram(t, at)
	if errno != 0 {
		return 0, errno
	}
	return t.Locked(func() (uint64, linux.Errno) {
		next, errno := t.Filters().Add(program)
		if errno != 0 {
			return 0, errno
		}
		if flags&linux.SECCOMP_FILTER_FLAG_TSYNC != 0 {
			if id := synchronize(t, next); id != 0 {
				if flags&linux.SECCOMP_FILTER_FLAG_TSYNC_ESRCH != 0 {
					return 0, linux.ESRCH
				}
				return id, 0
			}
		}
		t.SetFilters(next)
		return 0, 0
	})
}

// synchronize sets the filter chain of all other threads of the process, whose chains it must extend. If a thread has
// a chain that it does not extend, synchronize changes nothing and returns the thread's ID. The caller holds the lock
// that guards all chains of filters.
func synchronize(t Caller, next *Filter) uint64 {
	for o := range t.Others() {
		if f := o.Filters(); f.IsStrict() || !f.Descends(t.Filters()) {
			return uint64(o.ID())
		}
	}
	for o := range t.Others() {
		o.SetFilters(next)
		if t.Identity().NoNewPrivs {
			o.ForbidPrivileges()
		}
	}
	return 0
}

// readProgram reads and checks a program. Errors: EFAULT, EINVAL; EACCES for a thread that may get privileges by execve and
// has no CAP_SYS_ADMIN.
func readProgram(t Caller, at uint64) (bpf.Program, linux.Errno) {
	const header = 16
	le := binary.LittleEndian
	b := make([]byte, header)
	if errno := t.Memory().Read(b, at); errno != 0 {
		return nil, errno
	}
	n := int(le.Uint16(b))
	switch {
	case n == 0 || n > bpf.MaxLen:
		return nil, linux.EINVAL
	case !t.Identity().NoNewPrivs && !t.Identity().Has(linux.CAP_SYS_ADMIN):
		return nil, linux.EACCES
	}
	text := make([]byte, n*Instruction)
	if errno := t.Memory().Read(text, le.Uint64(b[8:])); errno != 0 {
		return nil, errno
	}
	return Parse(text)
}

// codeSeccomp is the si_code of a SIGSYS by a filter, SYS_SECCOMP.
const codeSeccomp = 1

// Check filters a call. It returns the number of the call to execute, and false for none: the result is in the registers, or the
// thread ends.
func Check(t Caller, number uint64) (uint64, bool) {
	f := t.Filters()
	switch {
	case f == nil:
		return number, true
	case f.IsStrict():
		if StrictAllows(number) {
			return number, true
		}
		t.Kill(linux.SIGKILL, false)
		return 0, false
	}
	for traced := false; ; traced = true {
		frame := t.Registers()
		r := f.Verdict(Data(number, frame))
		data := r & linux.SECCOMP_RET_DATA
		switch r & linux.SECCOMP_RET_ACTION_FULL {
		case linux.SECCOMP_RET_ALLOW, linux.SECCOMP_RET_LOG:
			return number, true
		case linux.SECCOMP_RET_ERRNO:
			const most = 4095
			frame.AX = -uint64(min(data, most))
			return 0, false
		case linux.SECCOMP_RET_TRAP:
			frame.AX = number
			t.Force(signal.Info{
				Signal: signal.System, Code: codeSeccomp, Errno: int32(data), Addr: frame.IP,
				Value: number&(1<<32-1) | linux.AUDIT_ARCH_X86_64<<32,
			})
			return 0, false
		case linux.SECCOMP_RET_TRACE:
			if traced {
				return number, true
			}
			var ok bool
			if number, ok = t.Report(number, data); !ok {
				return 0, false
			}
		case linux.SECCOMP_RET_KILL_THREAD:
			t.Kill(linux.SIGSYS, false)
			return 0, false
		default:
			t.Kill(linux.SIGSYS, true)
			return 0, false
		}
	}
}
