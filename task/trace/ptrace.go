package trace

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// The requests of ptrace(2). stops.go has the stops.

// traceOptions are the known options of PTRACE_SETOPTIONS.
const traceOptions = 0xff | linux.PTRACE_O_EXITKILL

// Call implements ptrace(2). Errors: ESRCH for a thread that the caller does not trace, or that is not stopped; EPERM, EIO,
// EINVAL, EFAULT.
func Call(t Thread, a call.Args) (uint64, linux.Errno) {
	if uint64(a.A1) == linux.PTRACE_TRACEME {
		return locked(t, func() (uint64, linux.Errno) { return traceMe(t) })
	}
	switch a.A1 {
	case linux.PTRACE_ATTACH:
		return attachTo(t, a.A2, false, 0)
	case linux.PTRACE_SEIZE:
		switch {
		case a.A3 != 0, a.A4&^traceOptions != 0:
			return 0, linux.EIO
		}
		return attachTo(t, a.A2, true, a.A4)
	case linux.PTRACE_PEEKTEXT, linux.PTRACE_PEEKDATA, linux.PTRACE_POKETEXT, linux.PTRACE_POKEDATA:
		return peekPoke(t, a)
	case linux.PTRACE_GETREGSET, linux.PTRACE_SETREGSET:
		return registerSet(t, a)
	case linux.PTRACE_SETREGS:
		return store(t, a, RegistersSize, Stopped.SetRegisters)
	case linux.PTRACE_SETFPREGS:
		return store(t, a, FloatSize, Stopped.SetFloat)
	case linux.PTRACE_SETSIGINFO:
		return store(t, a, signal.InfoSize, Stopped.SetInfo)
	case linux.PTRACE_SETSIGMASK:
		if a.A3 != setSize {
			return 0, linux.EINVAL
		}
		return store(t, a, setSize, Stopped.SetMask)
	}
	if get := Get(a); get != nil {
		return load(t, a, get)
	}
	return locked(t, func() (uint64, linux.Errno) { return 0, control(t, a) })
}

// traceMe implements PTRACE_TRACEME: the thread that created the process becomes the tracer. The caller holds the
// lock of System.
func traceMe(t Thread) (uint64, linux.Errno) {
	p, s := t.Process(), t.System()
	parent := s.Process(p.Node().Parent())
	if t.Links().Traced != nil || parent == nil {
		return 0, linux.EPERM
	}
	var by Thread
	for by = range parent.Threads() {
		break
	}
	if by == nil {
		return 0, linux.EPERM
	}
	if f := s.Thread(p.Forker()); f != nil && f.Process() == parent {
		by = f
	}
	attach(t, by, false, 0)
	return 0, 0
}

// attachTo makes thread t the tracer of the thread with an ID. If that thread has stopped together with its process, attachTo
// waits until it is stopped for the tracer: a request may follow without a wait (Linux's JOBCTL_TRAPPING). Another thread of a
// stopped process may need long to stop, for example if it waits for a vfork child. Errors: ESRCH, EPERM.
func attachTo(t Thread, id uint64, seize bool, options uint64) (uint64, linux.Errno) {
	var settled chan struct{}
	n, errno := locked(t, func() (uint64, linux.Errno) {
		of := t.System().Thread(family.PID(number(id)))
		switch {
		case of == nil:
			return 0, linux.ESRCH
		case of.Process() == t.Process(), of.Links().Traced != nil, of.Process().Ending(), !t.MayTrace(of.Process()):
			return 0, linux.EPERM
		}
		x := attach(of, t, seize, options)
		if of.Process().Stopped() && of.Links().inStop {
			settled = make(chan struct{})
			x.settled = settled
		}
		if !seize {
			of.Process().Send(of, signal.Info{Signal: signal.Stop, Code: signal.CodeKernel})
		}
		of.Alert()
		return 0, 0
	})
	if settled != nil {
		t.Await(settled) // a signal to the tracer ends the wait, too
	}
	return n, errno
}

// tracing returns the thread with an ID, which t traces and which is stopped. The caller holds the lock of System.
// Errors: ESRCH.
func tracing(t Thread, id uint64) (*Tracee, linux.Errno) {
	x, errno := traces(t, id)
	if errno == 0 && (!x.stopped || x.listening) {
		return nil, linux.ESRCH
	}
	return x, errno
}

// traces returns the thread with an ID, which t traces. The caller holds the lock of System. Errors: ESRCH.
func traces(t Thread, id uint64) (*Tracee, linux.Errno) {
	of := t.System().Thread(family.PID(number(id)))
	if of == nil || of.Links().Traced == nil || of.Links().Traced.by != t {
		return nil, linux.ESRCH
	}
	return of.Links().Traced, 0
}

// control executes the requests that resume a thread or change how it is traced. The caller holds the lock of
// System.
func control(t Thread, a call.Args) linux.Errno {
	find := tracing
	if a.A1 == linux.PTRACE_KILL || a.A1 == linux.PTRACE_INTERRUPT {
		find = traces
	}
	x, errno := find(t, a.A2)
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
		x.task.Process().Send(x.task, signal.Info{Signal: signal.Kill, Code: signal.CodeKernel})
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
		x.task.Alert()
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
		LoadDebug(x.task)
		return errno
	default:
		return linux.EIO
	}
	return 0
}

// peekPoke implements PTRACE_PEEKDATA and PTRACE_POKEDATA. Errors: EIO for an address that is not mapped.
func peekPoke(t Thread, a call.Args) (uint64, linux.Errno) {
	s := t.System()
	s.Lock()
	x, errno := tracing(t, a.A2)
	var of *mem.Map
	var leave func()
	if errno == 0 {
		of, leave = x.task.Process().Borrow()
	}
	s.Unlock()
	switch {
	case errno != 0:
		return 0, errno
	case of == nil:
		return 0, linux.ESRCH
	}
	defer leave()
	var b [wordSize]byte
	if a.A1 == linux.PTRACE_PEEKTEXT || a.A1 == linux.PTRACE_PEEKDATA {
		if n, _ := of.ReadForced(b[:], a.A3); n < len(b) {
			return 0, linux.EIO
		}
		return 0, t.Memory().Write(a.A4, b[:])
	}
	binary.LittleEndian.PutUint64(b[:], a.A4)
	if n, _ := of.WriteForced(b[:], a.A3); n < len(b) {
		return 0, linux.EIO
	}
	return 0, 0
}

// load stores the result of a request in the memory of the tracer. PTRACE_GET_SYSCALL_INFO returns its size.
func load(t Thread, a call.Args, get func(Stopped) ([]byte, linux.Errno)) (uint64, linux.Errno) {
	var b []byte
	_, errno := locked(t, func() (uint64, linux.Errno) {
		x, errno := tracing(t, a.A2)
		if errno == 0 {
			b, errno = get(x.view())
		}
		return 0, errno
	})
	if errno != 0 {
		return 0, errno
	}
	if a.A1 == linux.PTRACE_GET_SYSCALL_INFO {
		return uint64(len(b)), t.Memory().Write(a.A4, b[:min(uint64(len(b)), a.A3)])
	}
	return 0, t.Memory().Write(a.A4, b)
}

// store reads a structure from the memory of the tracer, and sets the state of a stopped thread from it.
func store(t Thread, a call.Args, size int, set func(Stopped, []byte) linux.Errno) (uint64, linux.Errno) {
	b := make([]byte, size)
	if errno := t.Memory().Read(b, a.A4); errno != 0 {
		return 0, errno
	}
	return locked(t, func() (uint64, linux.Errno) {
		x, errno := tracing(t, a.A2)
		if errno == 0 {
			errno = set(x.view(), b)
		}
		return 0, errno
	})
}

// registerSet implements PTRACE_GETREGSET and PTRACE_SETREGSET. Errors: EINVAL for an unknown set, or a size that is no
// multiple of a word.
func registerSet(t Thread, a call.Args) (uint64, linux.Errno) {
	var vector [linux.SizeofIovec]byte
	errno := t.Memory().Read(vector[:], a.A4)
	if errno != 0 {
		return 0, errno
	}
	v := linux.ParseIovec(vector[:])
	get, set := Stopped.Registers, Stopped.SetRegisters
	switch a.A3 {
	case linux.NT_PRSTATUS:
	case linux.NT_PRFPREG:
		get, set = Stopped.Float, Stopped.SetFloat
	case linux.NT_X86_XSTATE:
		get, set = Stopped.Vectors, Stopped.SetVectors
	default:
		return 0, linux.EINVAL
	}
	if v.Len%wordSize != 0 {
		return 0, linux.EINVAL
	}
	var b []byte
	_, errno = locked(t, func() (uint64, linux.Errno) {
		x, errno := tracing(t, a.A2)
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
		if errno := t.Memory().Read(b, v.Base); errno != 0 {
			return 0, errno
		}
		_, errno = locked(t, func() (uint64, linux.Errno) {
			x, errno := tracing(t, a.A2)
			if errno == 0 {
				errno = set(x.view(), b)
			}
			return 0, errno
		})
	} else {
		errno = t.Memory().Write(v.Base, b)
	}
	if errno != 0 {
		return 0, errno
	}
	return 0, t.Memory().Write(a.A4+wordSize, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
}

// LoadDebug passes the debug registers of a traced thread to the machine. The next entry to ring 3 loads all
// registers. The caller holds the lock of System, and the thread does not run.
func LoadDebug(t Thread) {
	x := t.Links().Traced
	if x == nil {
		return
	}
	t.Machine().SetDebug(x.Debug.Addresses(), x.Debug.Control())
	if x.Debug.Active() {
		t.Machine().Restore()
	}
}

// DebugTrap returns the signal for a debug exception: a step, or a hit of a debug register. It returns false if the thread
// has set no breakpoint that explains the exception.
func DebugTrap(t Thread, ip uint64) (signal.Info, bool) {
	status := t.Machine().DebugStatus()
	i := signal.Info{Signal: signal.Trap, Code: trapStep, Addr: ip}
	if !Hit(status) {
		return i, true
	}
	s := t.System()
	s.Lock()
	defer s.Unlock()
	x := t.Links().Traced
	if x == nil || !x.Debug.Active() {
		return i, Single(status)
	}
	if x.Debug.Trapped(status) {
		t.Machine().Registers().Flags |= FlagResume
	}
	if !Single(status) {
		i.Code = trapWatch
	}
	return i, true
}
