package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/bpf"
	"loam/posix/call"
	"loam/task/signal"
)

// Filters of system calls that a program sets for itself (seccomp(2)). A thread has a chain of filters, which its children
// and new programs inherit. A filter is not changed and never removed.
//
// A thread without filters pays nothing: see attention.

// filter is one program of a chain. strict stands for SECCOMP_MODE_STRICT, which has no program.
type filter struct {
	older   *filter
	program bpf.Program
	strict  bool
	count   int // number of filters in the chain
	cost    int // instructions in the chain, and overheadEach for each filter
}

// Bounds of a chain (Linux's kernel/seccomp.c).
const (
	mostFilterCost = 1 << 15
	overheadEach   = 4
	callDataSize   = 64 // size of struct seccomp_data in bytes
)

// filterCalls are the calls that set filters.
var filterCalls = map[int]serveFunc{linux.SYS_SECCOMP: seccomp}

// inherit gives a new thread the filters of the thread that creates it. The caller holds System.mu.
func (t *Task) inherit(of *Task) { t.setFilters(of.filters.Load()) }

func (t *Task) setFilters(f *filter) {
	t.filters.Store(f)
	if f != nil {
		t.alerted.filter()
	}
}

// mode returns the mode as PR_GET_SECCOMP and /proc/PID/status show it, and the number of filters.
func (f *filter) mode() (mode, count int) {
	switch {
	case f == nil:
		return 0, 0
	case f.strict:
		return linux.SECCOMP_MODE_STRICT, 0
	}
	return linux.SECCOMP_MODE_FILTER, f.count
}

// descends reports whether the list of filters that begins with top contains f. It is true for a nil f, which is no filter.
func (f *filter) descends(top *filter) bool {
	if f == nil {
		return true
	}
	for ; top != nil; top = top.older {
		if top == f {
			return true
		}
	}
	return false
}

// seccomp implements seccomp(2) without notifications to another process. Errors: EINVAL, EACCES, EFAULT, ENOMEM, EOPNOTSUPP.
func seccomp(t *Task, a call.Args) (uint64, linux.Errno) {
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
		mode, _ := t.filters.Load().mode()
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
		if f := t.filters.Load(); f != nil && !f.strict {
			return 0, linux.EINVAL
		}
		t.setFilters(&filter{strict: true})
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
		old := t.filters.Load()
		next := &filter{older: old, program: program, count: 1, cost: len(program) + overheadEach}
		if old != nil {
			next.count, next.cost = old.count+1, next.cost+old.cost
		}
		switch {
		case old != nil && old.strict:
			return 0, linux.EINVAL
		case next.cost > mostFilterCost:
			return 0, linux.ENOMEM
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
func (t *Task) synchronize(next *filter) uint64 {
	for _, o := range t.process.tasks {
		f := o.filters.Load()
		if o != t && (f != nil && f.strict || !f.descends(t.filters.Load())) {
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
	const header, each = 16, 8
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
	text := make([]byte, n*each)
	if errno := t.caller.Memory.Read(text, le.Uint64(b[8:])); errno != 0 {
		return nil, errno
	}
	list := make([]bpf.Instruction, n)
	for i := range list {
		c := text[i*each:]
		list[i] = bpf.Instruction{Code: le.Uint16(c), JT: c[2], JF: c[3], K: le.Uint32(c[4:])}
		if !filterInstruction(list[i]) {
			return nil, linux.EINVAL
		}
	}
	program, err := bpf.New(list)
	if err != nil {
		return nil, linux.EINVAL
	}
	return program, 0
}

// filterInstruction reports whether a filter of calls may have an instruction: loads of whole words only, and no remainders.
func filterInstruction(i bpf.Instruction) bool {
	const (
		load, loadX, alu      = 0, 1, 4
		class, mode, size, op = 7, 0xe0, 0x18, 0xf0
		absolute, indirect    = 0x20, 0x40
		shift                 = 0xa0 // BPF_MSH
		modulo                = 0x90
	)
	switch i.Code & class {
	case load:
		if i.Code&mode == absolute && (i.K >= callDataSize || i.K%4 != 0) {
			return false
		}
		return i.Code&size == 0 && i.Code&mode != indirect
	case loadX:
		return i.Code&mode != shift
	case alu:
		return i.Code&op != modulo
	}
	return true
}

// callData encodes a struct seccomp_data for package bpf, which loads words in network byte order.
func (t *Task) callData(number uint64) []byte {
	f := t.thread.Registers()
	be := binary.BigEndian
	b := make([]byte, 0, callDataSize)
	b = be.AppendUint32(b, uint32(number))
	b = be.AppendUint32(b, linux.AUDIT_ARCH_X86_64)
	for _, v := range [...]uint64{f.IP, f.DI, f.SI, f.DX, f.R10, f.R8, f.R9} {
		b = be.AppendUint32(b, uint32(v))
		b = be.AppendUint32(b, uint32(v>>32))
	}
	return b
}

// verdict returns what the chain says about a call: the action with the highest precedence, of the newest filter that returns
// it.
func (f *filter) verdict(data []byte) uint32 {
	result := uint32(linux.SECCOMP_RET_ALLOW)
	for ; f != nil; f = f.older {
		r := f.program.Run(data)
		if int32(r&linux.SECCOMP_RET_ACTION_FULL) < int32(result&linux.SECCOMP_RET_ACTION_FULL) {
			result = r
		}
	}
	return result
}

// filterCall filters a call. It returns the number of the call to execute, and false for none.
func (t *Task) filterCall(number uint64) (uint64, bool) {
	f := t.filters.Load()
	switch {
	case f == nil:
		return number, true
	case f.strict:
		switch number {
		case linux.SYS_READ, linux.SYS_WRITE, linux.SYS_EXIT, linux.SYS_RT_SIGRETURN:
			return number, true
		}
		t.filterKill(linux.SIGKILL, false)
		return 0, false
	}
	for traced := false; ; traced = true {
		r := f.verdict(t.callData(number))
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
	if x == nil || x.options&linux.PTRACE_O_TRACESECCOMP == 0 {
		return 0, false
	}
	x.inCall, x.number, x.filtered, x.message = true, number, true, uint64(data)
	code := eventCode(linux.PTRACE_EVENT_SECCOMP)
	t.traceStop(code, t.stopInfo(linux.SIGTRAP, code))
	x.inCall = x.calls
	return x.number, int64(x.number) >= 0 && !t.process.ending
}
