package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/mem"
	"loam/posix/call"
	"loam/task/signal"
)

// The registers of a traced thread: struct user and its parts (Linux's arch/x86/include/asm/user_64.h), and the register sets
// of ELF core files.

// Sizes and offsets in bytes.
const (
	userRegistersSize = 27 * wordSize // struct user_regs_struct
	userDebug         = 848           // u_debugreg in struct user
	userSize          = userDebug + 8*wordSize
	floatSize         = 512 // struct user_fpregs_struct: the legacy area of XSAVE
	systemMask        = 464 // of XCR0 in NT_X86_XSTATE
)

// Indices in struct user_regs_struct of registers that are not plain fields of a frame.
const (
	userAX    = 10
	userCall  = 15 // orig_rax
	userCS    = 17
	userFlags = 18
	userSS    = 20
	userFS    = 21
	userGS    = 22
)

// frameRegisters returns the fields of a frame in the order of struct user_regs_struct; nil for others.
func frameRegisters(f *amd64.Frame) [27]*uint64 {
	return [27]*uint64{
		&f.R15, &f.R14, &f.R13, &f.R12, &f.BP, &f.BX, &f.R11, &f.R10, &f.R9, &f.R8, nil, &f.CX, &f.DX, &f.SI, &f.DI, nil,
		&f.IP, nil, nil, &f.SP, nil, nil, nil, nil, nil, nil, nil,
	}
}

// Results of an interrupted call, which a debugger sees before it is made again (Linux's include/linux/errno.h).
const (
	restartSystem   = 512 // unless a handler without SA_RESTART runs
	restartNoHand   = 514 // unless a handler runs
	restartBlock    = 516 // with the remaining time
	userFlagsChange = 0x54dd5
)

// shownAX returns RAX as a tracer sees it.
func (x *tracee) shownAX() uint64 {
	t := x.task
	f := t.thread.Registers()
	interrupted := linux.EINTR
	if !t.again.pending || f.AX != -uint64(interrupted) {
		return f.AX
	}
	code := int64(restartNoHand)
	switch t.again.kind {
	case signal.Restartable, signal.Always:
		code = restartSystem
	case signal.Rest:
		code = restartBlock
	}
	return uint64(-code)
}

// shownCall returns orig_rax: the number of the call in progress, or -1.
func (x *tracee) shownCall() uint64 {
	switch {
	case x.inCall:
		return x.number
	case x.task.again.pending:
		return x.task.again.number
	}
	return ^uint64(0)
}

// registers encodes a struct user_regs_struct.
func (x *tracee) registers() []byte {
	b := make([]byte, 0, userRegistersSize)
	for i := range userRegistersSize / wordSize {
		b = binary.LittleEndian.AppendUint64(b, x.register(i))
	}
	return b
}

// register returns a word of struct user_regs_struct.
func (x *tracee) register(i int) uint64 {
	f := x.task.thread.Registers()
	if r := frameRegisters(f)[i]; r != nil {
		return *r
	}
	fs, gs := x.task.thread.Bases()
	switch i {
	case userAX:
		return x.shownAX()
	case userCall:
		return x.shownCall()
	case userCS:
		return amd64.UserCodeSelector
	case userFlags:
		return f.Flags
	case userSS:
		return amd64.UserDataSelector
	case userFS:
		return fs
	case userGS:
		return gs
	}
	return 0 // DS, ES, FS, GS
}

// setRegisters decodes a struct user_regs_struct, or the first words of one.
func (x *tracee) setRegisters(b []byte) linux.Errno {
	for i := range len(b) / wordSize {
		if errno := x.setRegister(i, binary.LittleEndian.Uint64(b[i*wordSize:])); errno != 0 {
			return errno
		}
	}
	return 0
}

// setRegister changes a word of struct user_regs_struct. Errors: EIO for a value that ring 3 cannot have.
func (x *tracee) setRegister(i int, v uint64) linux.Errno {
	t := x.task
	f := t.thread.Registers()
	t.thread.Restore()
	if r := frameRegisters(f)[i]; r != nil {
		*r = v
		return 0
	}
	fs, gs := t.thread.Bases()
	switch i {
	case userAX:
		if v != x.shownAX() {
			f.AX, t.again.pending = v, false
		}
	case userCall:
		if x.number = v; !x.inCall && int64(v) < 0 {
			t.again.pending = false
		}
	case userFlags:
		f.Flags = f.Flags&^userFlagsChange | v&userFlagsChange
	case userFS:
		if t.thread.SetBases(v, gs) != nil {
			return linux.EIO
		}
	case userGS:
		if t.thread.SetBases(fs, v) != nil {
			return linux.EIO
		}
	}
	return 0
}

// plainVectors returns the vector registers as the machine keeps them.
func (x *tracee) plainVectors() []byte {
	b := make([]byte, x.task.thread.VectorSize())
	x.task.thread.Vectors(b)
	return b
}

// float returns the legacy area of the vector registers.
func (x *tracee) float() []byte { return x.plainVectors()[:floatSize] }

// setFloat replaces the legacy area of the vector registers.
func (x *tracee) setFloat(b []byte) linux.Errno {
	v := x.plainVectors()
	copy(v, b)
	const header, legacy = 512, 3 // offset of the XSAVE header, and its bits for x87 and SSE
	v[header] |= legacy
	x.task.thread.SetVectors(v)
	x.task.thread.Restore()
	return 0
}

// setVectors replaces the vector registers in the format of XSAVE. Errors: EFAULT for a set that is too short.
func (x *tracee) setVectors(b []byte) linux.Errno {
	n := x.task.thread.VectorSize()
	if len(b) < n {
		return linux.EFAULT
	}
	clear(b[systemMask : systemMask+wordSize])
	x.task.thread.SetVectors(b[:n])
	x.task.thread.Restore()
	return 0
}

// vectors returns the vector registers in the format of XSAVE, with the components that the processor has.
func (x *tracee) vectors() []byte {
	b := x.plainVectors()
	if len(b) >= systemMask+wordSize {
		binary.LittleEndian.PutUint64(b[systemMask:], x.task.thread.VectorComponents())
	}
	return b
}

// user returns a word of struct user (PTRACE_PEEKUSER). Errors: EIO.
func (x *tracee) user(at uint64) ([]byte, linux.Errno) {
	v := uint64(0)
	switch {
	case at%wordSize != 0 || at >= userSize:
		return nil, linux.EIO
	case at < userRegistersSize:
		v = x.register(int(at / wordSize))
	case at >= userDebug:
		v = x.debug.word(int(at-userDebug) / wordSize)
	}
	return binary.LittleEndian.AppendUint64(nil, v), 0
}

// setUser changes a word of struct user (PTRACE_POKEUSER). Errors: EIO, EINVAL.
func (x *tracee) setUser(at, v uint64) linux.Errno {
	switch {
	case at%wordSize != 0 || at >= userSize:
		return linux.EIO
	case at < userRegistersSize:
		return x.setRegister(int(at/wordSize), v)
	case at >= userDebug:
		if errno := x.debug.set(int(at-userDebug)/wordSize, v); errno != 0 {
			return errno
		}
		x.hook()
		x.task.loadDebug()
		return 0
	}
	return linux.EIO
}

// traceRegisterSet implements PTRACE_GETREGSET and PTRACE_SETREGSET. Errors: EINVAL for an unknown set, or a size that is no
// multiple of a word.
func (t *Task) traceRegisterSet(a call.Args) (uint64, linux.Errno) {
	v, errno := read(t, a.A4, linux.SizeofIovec, linux.ParseIovec)
	if errno != 0 {
		return 0, errno
	}
	get := func(x *tracee) []byte { return x.registers() }
	set := (*tracee).setRegisters
	switch a.A3 {
	case linux.NT_PRSTATUS:
	case linux.NT_PRFPREG:
		get, set = (*tracee).float, (*tracee).setFloat
	case linux.NT_X86_XSTATE:
		get, set = (*tracee).vectors, (*tracee).setVectors
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
			b = get(x)
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
				errno = set(x, b)
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

// flagResume is RF of RFLAGS: a breakpoint for the next instruction is ignored.
const flagResume = 1 << 16

// debugRegisters are DR0 to DR7 of a thread. DR6 is the status that Linux shows.
type debugRegisters [8]uint64

// Bits of DR7 (SDM volume 3, 17.2.4).
const (
	debugEnables  = 0xff
	debugAllowed  = 0xffff0000 | debugEnables
	debugStatus   = 6
	debugControl  = 7
	debugCount    = 4
	debugHit      = 1<<debugCount - 1 // of DR6
	debugReserved = 0xffff0ff0        // of DR6: bits that are one
)

// active reports whether a breakpoint is enabled.
func (d *debugRegisters) active() bool { return d[debugControl]&debugEnables != 0 }

// word returns a register. DR4 and DR5 are zero.
func (d *debugRegisters) word(i int) uint64 { return d[i] }

// set changes a register. Errors: EIO for DR4 and DR5; EINVAL for an address outside the process, or a breakpoint that the
// processor does not have.
func (d *debugRegisters) set(i int, v uint64) linux.Errno {
	next := *d
	switch i {
	case 4, 5:
		return linux.EIO
	case debugControl:
		v &= debugAllowed
	}
	next[i] = v
	for n := range debugCount {
		kind, length := next[debugControl]>>(16+4*n)&3, next[debugControl]>>(18+4*n)&3
		const execute, inOut, eight = 0, 2, 2
		size := [...]uint64{1, 2, 8, 4}[length]
		switch {
		case next[n] >= mem.End && i == n:
			return linux.EINVAL
		case next[debugControl]>>(2*n)&3 == 0:
		case kind == inOut, kind == execute && length != 0, next[n]%size != 0, next[n] >= mem.End:
			return linux.EINVAL
		}
	}
	*d = next
	return 0
}

// loadDebug gives the debug registers of a traced thread to the machine. The next entry to ring 3 loads all registers. The
// caller holds System.mu, and the thread does not run.
func (t *Task) loadDebug() {
	x := t.traced
	if x == nil {
		return
	}
	t.thread.SetDebug([debugCount]uint64(x.debug[:debugCount]), x.debug[debugControl])
	if x.debug.active() {
		t.thread.Restore()
	}
}

// debugTrap returns the signal for a debug exception: a step, or a hit of a debug register. It returns false for a hit that
// was not meant for the thread.
func (t *Task) debugTrap(ip uint64) (signal.Info, bool) {
	const step = 1 << 14
	status := t.thread.DebugStatus()
	i := signal.Info{Signal: signal.Trap, Code: trapStep, Addr: ip}
	if status&debugHit == 0 {
		return i, true
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil || !x.debug.active() {
		return i, status&step != 0
	}
	for n := range debugCount {
		if status>>n&1 != 0 && x.debug[debugControl]>>(16+4*n)&3 == 0 { // an instruction, which must run now
			t.thread.Registers().Flags |= flagResume
		}
	}
	x.debug[debugStatus] = debugReserved | status&(debugHit|step)
	if status&step == 0 {
		i.Code = trapWatch
	}
	return i, true
}
