package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// ptrace(2): the requests. trace.go has the stops.

// traceCalls are the calls of debuggers.
var traceCalls = map[int]serveFunc{linux.SYS_PTRACE: ptrace}

// traceOptions are the known options of PTRACE_SETOPTIONS.
const traceOptions = 0xff | linux.PTRACE_O_EXITKILL

// word is the size of a register in bytes.
const wordSize = 8

// ptrace implements ptrace(2). Errors: ESRCH for a thread that the caller does not trace, or that is not stopped; EPERM, EIO,
// EINVAL, EFAULT.
func ptrace(t *Task, a call.Args) (uint64, linux.Errno) {
	if uint64(a.A1) == linux.PTRACE_TRACEME {
		return locked(t, t.traceMe)
	}
	switch a.A1 {
	case linux.PTRACE_ATTACH:
		return locked(t, func() (uint64, linux.Errno) { return 0, t.attachTo(a.A2, false, 0) })
	case linux.PTRACE_SEIZE:
		switch {
		case a.A3 != 0, a.A4&^traceOptions != 0:
			return 0, linux.EIO
		}
		return locked(t, func() (uint64, linux.Errno) { return 0, t.attachTo(a.A2, true, a.A4) })
	case linux.PTRACE_PEEKTEXT, linux.PTRACE_PEEKDATA, linux.PTRACE_POKETEXT, linux.PTRACE_POKEDATA:
		return t.traceMemory(a)
	case linux.PTRACE_GETREGSET, linux.PTRACE_SETREGSET:
		return t.traceRegisterSet(a)
	case linux.PTRACE_SETREGS:
		return t.traceStore(a, userRegistersSize, (*tracee).setRegisters)
	case linux.PTRACE_SETFPREGS:
		return t.traceStore(a, floatSize, (*tracee).setFloat)
	case linux.PTRACE_SETSIGINFO:
		return t.traceStore(a, infoSize, (*tracee).setInfo)
	case linux.PTRACE_SETSIGMASK:
		if a.A3 != setSize {
			return 0, linux.EINVAL
		}
		return t.traceStore(a, setSize, (*tracee).setMask)
	}
	if get := traceGet(a); get != nil {
		return t.traceLoad(a, get)
	}
	return locked(t, func() (uint64, linux.Errno) { return 0, t.traceControl(a) })
}

// traceMe makes the thread that has created the process trace it (PTRACE_TRACEME). The caller holds System.mu.
func (t *Task) traceMe() (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	parent := s.processes[p.node.Parent()]
	if t.traced != nil || parent == nil || len(parent.tasks) == 0 {
		return 0, linux.EPERM
	}
	by := parent.tasks[0]
	if f := s.tasks[p.forker]; f != nil && f.process == parent {
		by = f
	}
	t.trace(by, false, 0)
	return 0, 0
}

// attachTo makes the task the tracer of a thread. The caller holds System.mu.
func (t *Task) attachTo(id uint64, seize bool, options uint64) linux.Errno {
	of := t.process.system.tasks[family.PID(number(id))]
	switch {
	case of == nil:
		return linux.ESRCH
	case of.process == t.process, of.traced != nil, of.process.ending, !t.mayInspect(of.process, false):
		return linux.EPERM
	}
	of.trace(t, seize, options)
	if !seize {
		of.process.send(of, signal.Info{Signal: signal.Stop, Code: signal.CodeKernel})
	}
	of.alert()
	return 0
}

// tracing returns a thread that the task traces, and that is stopped. The caller holds System.mu. Errors: ESRCH.
func (t *Task) tracing(id uint64) (*tracee, linux.Errno) {
	x, errno := t.traces(id)
	if errno == 0 && (!x.stopped || x.listening) {
		return nil, linux.ESRCH
	}
	return x, errno
}

// traces returns a thread that the task traces. The caller holds System.mu. Errors: ESRCH.
func (t *Task) traces(id uint64) (*tracee, linux.Errno) {
	of := t.process.system.tasks[family.PID(number(id))]
	if of == nil || of.traced == nil || of.traced.by != t {
		return nil, linux.ESRCH
	}
	return of.traced, 0
}

// traceControl executes the requests that resume a thread or change how it is traced. The caller holds System.mu.
func (t *Task) traceControl(a call.Args) linux.Errno {
	find := t.tracing
	if a.A1 == linux.PTRACE_KILL || a.A1 == linux.PTRACE_INTERRUPT {
		find = t.traces
	}
	x, errno := find(a.A2)
	if errno != 0 {
		return errno
	}
	switch a.A1 {
	case linux.PTRACE_CONT, linux.PTRACE_SYSCALL, linux.PTRACE_SINGLESTEP:
		if a.A4 > uint64(signal.Last) {
			return linux.EIO
		}
		x.calls, x.step = a.A1 == linux.PTRACE_SYSCALL, a.A1 == linux.PTRACE_SINGLESTEP
		x.hook()
		x.release(signal.Number(a.A4))
	case linux.PTRACE_DETACH:
		if a.A4 > uint64(signal.Last) {
			return linux.EIO
		}
		x.untrace(signal.Number(a.A4))
	case linux.PTRACE_KILL:
		x.task.process.send(x.task, signal.Info{Signal: signal.Kill, Code: signal.CodeKernel})
	case linux.PTRACE_SETOPTIONS:
		if a.A4&^traceOptions != 0 {
			return linux.EINVAL
		}
		x.options = a.A4
	case linux.PTRACE_INTERRUPT:
		if !x.seized {
			return linux.EIO
		}
		if x.trap = true; x.listening {
			x.release(0)
		}
		x.task.alert()
	case linux.PTRACE_LISTEN:
		if !x.seized || x.code>>8 != linux.PTRACE_EVENT_STOP {
			return linux.EIO
		}
		if x.listening = true; x.notify {
			x.release(0)
		}
	case linux.PTRACE_POKEUSR:
		return x.setUser(a.A3, a.A4)
	default:
		return linux.EIO
	}
	return 0
}

// traceMemory implements PTRACE_PEEKDATA and PTRACE_POKEDATA. Errors: EIO where there is no memory.
func (t *Task) traceMemory(a call.Args) (uint64, linux.Errno) {
	s := t.process.system
	s.mu.Lock()
	x, errno := t.tracing(a.A2)
	var of *addressSpace
	if errno == 0 {
		of = x.task.process.borrow()
	}
	s.mu.Unlock()
	switch {
	case errno != 0:
		return 0, errno
	case of == nil:
		return 0, linux.ESRCH
	}
	defer of.leave()
	var b [wordSize]byte
	if a.A1 == linux.PTRACE_PEEKTEXT || a.A1 == linux.PTRACE_PEEKDATA {
		if n, _ := of.Map.ReadForced(b[:], a.A3); n < len(b) {
			return 0, linux.EIO
		}
		return 0, t.caller.Memory.Write(a.A4, b[:])
	}
	binary.LittleEndian.PutUint64(b[:], a.A4)
	if n, _ := of.Map.WriteForced(b[:], a.A3); n < len(b) {
		return 0, linux.EIO
	}
	return 0, 0
}

// traceGet returns the function that encodes what a request reads, or nil for other requests.
func traceGet(a call.Args) func(*tracee) ([]byte, linux.Errno) {
	switch a.A1 {
	case linux.PTRACE_GETREGS:
		return func(x *tracee) ([]byte, linux.Errno) { return x.registers(), 0 }
	case linux.PTRACE_GETFPREGS:
		return func(x *tracee) ([]byte, linux.Errno) { return x.float(), 0 }
	case linux.PTRACE_PEEKUSR:
		return func(x *tracee) ([]byte, linux.Errno) { return x.user(a.A3) }
	case linux.PTRACE_GETEVENTMSG:
		return func(x *tracee) ([]byte, linux.Errno) { return binary.LittleEndian.AppendUint64(nil, x.message), 0 }
	case linux.PTRACE_GETSIGINFO:
		return func(x *tracee) ([]byte, linux.Errno) {
			if x.info == nil {
				return nil, linux.EINVAL
			}
			b := make([]byte, infoSize)
			putInfo(b, *x.info)
			return b, 0
		}
	case linux.PTRACE_GETSIGMASK:
		return func(x *tracee) ([]byte, linux.Errno) {
			if a.A3 != setSize {
				return nil, linux.EINVAL
			}
			return binary.LittleEndian.AppendUint64(nil, uint64(x.task.signals.Mask())), 0
		}
	case linux.PTRACE_GET_SYSCALL_INFO:
		return func(x *tracee) ([]byte, linux.Errno) { return x.callInfo(), 0 }
	}
	return nil
}

// traceLoad writes what a request reads to the memory of the tracer. PTRACE_GET_SYSCALL_INFO returns the size.
func (t *Task) traceLoad(a call.Args, get func(*tracee) ([]byte, linux.Errno)) (uint64, linux.Errno) {
	var b []byte
	_, errno := locked(t, func() (uint64, linux.Errno) {
		x, errno := t.tracing(a.A2)
		if errno == 0 {
			b, errno = get(x)
		}
		return 0, errno
	})
	if errno != 0 {
		return 0, errno
	}
	if a.A1 == linux.PTRACE_GET_SYSCALL_INFO {
		return uint64(len(b)), t.caller.Memory.Write(a.A4, b[:min(uint64(len(b)), a.A3)])
	}
	return 0, t.caller.Memory.Write(a.A4, b)
}

// traceStore reads a structure from the memory of the tracer, and stores it in a thread.
func (t *Task) traceStore(a call.Args, size int, set func(*tracee, []byte) linux.Errno) (uint64, linux.Errno) {
	b := make([]byte, size)
	if errno := t.caller.Memory.Read(b, a.A4); errno != 0 {
		return 0, errno
	}
	return locked(t, func() (uint64, linux.Errno) {
		x, errno := t.tracing(a.A2)
		if errno == 0 {
			errno = set(x, b)
		}
		return 0, errno
	})
}

// setInfo replaces the siginfo of the signal that is delivered (PTRACE_SETSIGINFO).
func (x *tracee) setInfo(b []byte) linux.Errno {
	if x.info == nil {
		return linux.EINVAL
	}
	*x.info = parseInfo(b)
	return 0
}

// setMask replaces the blocked signals (PTRACE_SETSIGMASK).
func (x *tracee) setMask(b []byte) linux.Errno {
	x.task.signals.SetMask(signal.Set(binary.LittleEndian.Uint64(b)))
	x.task.alerted.Store(true)
	return 0
}

// callInfo encodes a struct ptrace_syscall_info.
func (x *tracee) callInfo() []byte {
	const header, word, failures = 24, 8, 4095
	le := binary.LittleEndian
	f := x.task.thread.Registers()
	b := make([]byte, header)
	le.PutUint32(b[4:], linux.AUDIT_ARCH_X86_64)
	le.PutUint64(b[8:], f.IP)
	le.PutUint64(b[16:], f.SP)
	good := x.options&linux.PTRACE_O_TRACESYSGOOD != 0
	switch {
	case x.entering && good, x.filtered:
		b[0] = linux.PTRACE_SYSCALL_INFO_ENTRY
		for _, v := range [...]uint64{x.number, f.DI, f.SI, f.DX, f.R10, f.R8, f.R9} {
			b = le.AppendUint64(b, v)
		}
		if x.filtered {
			b[0] = linux.PTRACE_SYSCALL_INFO_SECCOMP
			b = le.AppendUint32(b, uint32(x.message))
		}
	case x.leaving && good:
		b[0] = linux.PTRACE_SYSCALL_INFO_EXIT
		v := x.shownAX()
		b = le.AppendUint64(b, v)
		b = append(b, byte(flag(-v-1 < failures)))
	}
	return b
}
