package trace

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/task/signal"
)

// The registers of a traced thread: struct user and its parts (Linux's arch/x86/include/asm/user_64.h), and the register sets
// of ELF core files.

// Sizes of register sets and offsets in them, in bytes.
const (
	wordSize      = 8             // size of a register
	RegistersSize = 27 * wordSize // size of struct user_regs_struct
	userDebug     = 848           // offset of u_debugreg in struct user
	userSize      = userDebug + 8*wordSize
	FloatSize     = 512 // size of struct user_fpregs_struct, which is the legacy area of XSAVE
	systemMask    = 464 // offset of XCR0 in NT_X86_XSTATE
)

// Indices in struct user_regs_struct of registers that are not plain fields of a frame.
const (
	userAX    = 10
	userCall  = 15 // index of orig_rax, the number of the system call
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

// Results of an interrupted system call that a debugger sees before the call is made again (Linux's
// include/linux/errno.h).
const (
	restartSystem   = 512 // ERESTARTSYS: restarts unless a handler without SA_RESTART runs
	restartNoHand   = 514 // ERESTARTNOHAND: restarts unless a handler runs
	restartBlock    = 516 // ERESTART_RESTARTBLOCK: restarts with the remaining time
	userFlagsChange = 0x54dd5
)

// ShownAX returns RAX as a tracer sees it.
func (x Stopped) ShownAX() uint64 {
	f := x.Thread.Registers()
	interrupted := linux.EINTR
	if !x.Again.Pending || f.AX != -uint64(interrupted) {
		return f.AX
	}
	code := int64(restartNoHand)
	switch x.Again.Kind {
	case signal.Restartable, signal.Always:
		code = restartSystem
	case signal.Rest:
		code = restartBlock
	}
	return uint64(-code)
}

// shownCall returns orig_rax: the number of the call in progress, or -1.
func (x Stopped) shownCall() uint64 {
	switch {
	case x.InCall:
		return x.Number
	case x.Again.Pending:
		return x.Again.Number
	}
	return ^uint64(0)
}

// Registers encodes a struct user_regs_struct.
func (x Stopped) Registers() []byte {
	b := make([]byte, 0, RegistersSize)
	for i := range RegistersSize / wordSize {
		b = binary.LittleEndian.AppendUint64(b, x.register(i))
	}
	return b
}

// register returns register i of struct user_regs_struct.
func (x Stopped) register(i int) uint64 {
	f := x.Thread.Registers()
	if r := frameRegisters(f)[i]; r != nil {
		return *r
	}
	fs, gs := x.Thread.Bases()
	switch i {
	case userAX:
		return x.ShownAX()
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
	return 0 // the segment registers DS, ES, FS and GS
}

// SetRegisters decodes a struct user_regs_struct, or the first words of one.
func (x Stopped) SetRegisters(b []byte) linux.Errno {
	for i := range len(b) / wordSize {
		if errno := x.setRegister(i, binary.LittleEndian.Uint64(b[i*wordSize:])); errno != 0 {
			return errno
		}
	}
	return 0
}

// setRegister changes register i of struct user_regs_struct. Errors: EIO for a value that is not possible in ring 3.
func (x Stopped) setRegister(i int, v uint64) linux.Errno {
	f := x.Thread.Registers()
	x.Thread.Restore()
	if r := frameRegisters(f)[i]; r != nil {
		*r = v
		return 0
	}
	fs, gs := x.Thread.Bases()
	switch i {
	case userAX:
		if v != x.ShownAX() {
			f.AX, x.Again.Pending = v, false
		}
	case userCall:
		if x.Number = v; !x.InCall && int64(v) < 0 {
			x.Again.Pending = false
		}
	case userFlags:
		f.Flags = f.Flags&^userFlagsChange | v&userFlagsChange
	case userFS:
		if x.Thread.SetBases(v, gs) != nil {
			return linux.EIO
		}
	case userGS:
		if x.Thread.SetBases(fs, v) != nil {
			return linux.EIO
		}
	}
	return 0
}

// plainVectors returns the vector registers in the format in which the machine keeps them.
func (x Stopped) plainVectors() []byte {
	b := make([]byte, x.Thread.VectorSize())
	x.Thread.Vectors(b)
	return b
}

// Float returns the legacy area of the vector registers.
func (x Stopped) Float() []byte { return x.plainVectors()[:FloatSize] }

// SetFloat replaces the legacy area of the vector registers.
func (x Stopped) SetFloat(b []byte) linux.Errno {
	v := x.plainVectors()
	copy(v, b)
	const header, legacy = 512, 3 // offset of the XSAVE header, and the bits for x87 and SSE in it
	v[header] |= legacy
	x.Thread.SetVectors(v)
	x.Thread.Restore()
	return 0
}

// SetVectors replaces the vector registers in the format of XSAVE. Errors: EFAULT for a set that is too short.
func (x Stopped) SetVectors(b []byte) linux.Errno {
	n := x.Thread.VectorSize()
	if len(b) < n {
		return linux.EFAULT
	}
	clear(b[systemMask : systemMask+wordSize])
	x.Thread.SetVectors(b[:n])
	x.Thread.Restore()
	return 0
}

// Vectors returns the vector registers in the format of XSAVE, with the components that the processor has.
func (x Stopped) Vectors() []byte {
	b := x.plainVectors()
	if len(b) >= systemMask+wordSize {
		binary.LittleEndian.PutUint64(b[systemMask:], x.Thread.VectorComponents())
	}
	return b
}

// User returns a word of struct user (PTRACE_PEEKUSER). Errors: EIO.
func (x Stopped) User(at uint64) ([]byte, linux.Errno) {
	v := uint64(0)
	switch {
	case at%wordSize != 0 || at >= userSize:
		return nil, linux.EIO
	case at < RegistersSize:
		v = x.register(int(at / wordSize))
	case at >= userDebug:
		v = x.Debug[int(at-userDebug)/wordSize]
	}
	return binary.LittleEndian.AppendUint64(nil, v), 0
}

// SetUser changes a word of struct user (PTRACE_POKEUSER). Errors: EIO, EINVAL.
func (x Stopped) SetUser(at, v uint64) linux.Errno {
	switch {
	case at%wordSize != 0 || at >= userSize:
		return linux.EIO
	case at < RegistersSize:
		return x.setRegister(int(at/wordSize), v)
	case at >= userDebug:
		return x.Debug.set(int(at-userDebug)/wordSize, v)
	}
	return linux.EIO
}
