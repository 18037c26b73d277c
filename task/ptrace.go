package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
	"loam/task/trace"
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
		return t.traceStore(a, trace.RegistersSize, trace.Stopped.SetRegisters)
	case linux.PTRACE_SETFPREGS:
		return t.traceStore(a, trace.FloatSize, trace.Stopped.SetFloat)
	case linux.PTRACE_SETSIGINFO:
		return t.traceStore(a, signal.InfoSize, trace.Stopped.SetInfo)
	case linux.PTRACE_SETSIGMASK:
		if a.A3 != setSize {
			return 0, linux.EINVAL
		}
		return t.traceStore(a, setSize, trace.Stopped.SetMask)
	}
	if get := trace.Get(a); get != nil {
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
		x.Options = a.A4
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
		errno := x.view().SetUser(a.A3, a.A4)
		x.hook()
		x.task.loadDebug()
		return errno
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

// traceLoad writes what a request reads to the memory of the tracer. PTRACE_GET_SYSCALL_INFO returns the size.
func (t *Task) traceLoad(a call.Args, get func(trace.Stopped) ([]byte, linux.Errno)) (uint64, linux.Errno) {
	var b []byte
	_, errno := locked(t, func() (uint64, linux.Errno) {
		x, errno := t.tracing(a.A2)
		if errno == 0 {
			b, errno = get(x.view())
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
func (t *Task) traceStore(a call.Args, size int, set func(trace.Stopped, []byte) linux.Errno) (uint64, linux.Errno) {
	b := make([]byte, size)
	if errno := t.caller.Memory.Read(b, a.A4); errno != 0 {
		return 0, errno
	}
	return locked(t, func() (uint64, linux.Errno) {
		x, errno := t.tracing(a.A2)
		if errno == 0 {
			errno = set(x.view(), b)
		}
		return 0, errno
	})
}

// traceRegisterSet implements PTRACE_GETREGSET and PTRACE_SETREGSET. Errors: EINVAL for an unknown set, or a size that is no
// multiple of a word.
func (t *Task) traceRegisterSet(a call.Args) (uint64, linux.Errno) {
	v, errno := read(t, a.A4, linux.SizeofIovec, linux.ParseIovec)
	if errno != 0 {
		return 0, errno
	}
	get, set := trace.Stopped.Registers, trace.Stopped.SetRegisters
	switch a.A3 {
	case linux.NT_PRSTATUS:
	case linux.NT_PRFPREG:
		get, set = trace.Stopped.Float, trace.Stopped.SetFloat
	case linux.NT_X86_XSTATE:
		get, set = trace.Stopped.Vectors, trace.Stopped.SetVectors
	default:
		return 0, linux.EINVAL
	}
	if v.Len%wordSize != 0 {
		return 0, linux.EINVAL
	}
	var b []byte
	_, errno = locked(t, func() (uint64, linux.Errno) {
		x, errno := t.tracing(a.A2)
		if errno == 0 {
			b = get(x.view())
		}
		return 0, errno
	})
	if errno != 0 {
		return 0, errno
	}
	b = b[:min(uint64(len(b)), v.Len)]
	if a.A1 == linux.PTRACE_SETREGSET {
		if errno := t.caller.Memory.Read(b, v.Base); errno != 0 {
			return 0, errno
		}
		_, errno = locked(t, func() (uint64, linux.Errno) {
			x, errno := t.tracing(a.A2)
			if errno == 0 {
				errno = set(x.view(), b)
			}
			return 0, errno
		})
	} else {
		errno = t.caller.Memory.Write(v.Base, b)
	}
	if errno != 0 {
		return 0, errno
	}
	return 0, t.caller.Memory.Write(a.A4+wordSize, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
}

// loadDebug gives the debug registers of a traced thread to the machine. The next entry to ring 3 loads all registers. The
// caller holds System.mu, and the thread does not run.
func (t *Task) loadDebug() {
	x := t.traced
	if x == nil {
		return
	}
	t.thread.SetDebug(x.Debug.Addresses(), x.Debug.Control())
	if x.Debug.Active() {
		t.thread.Restore()
	}
}

// debugTrap returns the signal for a debug exception: a step, or a hit of a debug register. It returns false for a hit that
// was not meant for the thread.
func (t *Task) debugTrap(ip uint64) (signal.Info, bool) {
	status := t.thread.DebugStatus()
	i := signal.Info{Signal: signal.Trap, Code: trapStep, Addr: ip}
	if !trace.Hit(status) {
		return i, true
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil || !x.Debug.Active() {
		return i, trace.Single(status)
	}
	if x.Debug.Trapped(status) {
		t.thread.Registers().Flags |= trace.FlagResume
	}
	if !trace.Single(status) {
		i.Code = trapWatch
	}
	return i, true
}
