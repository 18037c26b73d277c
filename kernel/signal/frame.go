package signal

import "loam/arch/amd64"

// Frame is the structure that the kernel writes to a handler's stack: struct rt_sigframe of Linux on x86-64. Its
// first field is the address that the handler returns to. Saved vector registers, if any, lie above it, where
// Registers.VectorState points. A handler may change the registers in the frame; rt_sigreturn(2) loads them from
// there.
type Frame struct {
	Return  uint64
	Context Context
	Info    Info
}

// FrameSize is the size of a Frame; ContextOffset and InfoOffset are the offsets of its parts, all in bytes.
const (
	FrameSize     = 440
	ContextOffset = 8
	InfoOffset    = 312
)

// Context is struct ucontext.
type Context struct {
	Flags, Link uint64
	Stack       Stack
	Registers   Registers
	Mask        Set // mask of signals that were blocked before the handler was called
}

// Stack is stack_t, an alternate signal stack (sigaltstack(2)).
type Stack struct {
	Address uint64
	Flags   uint32
	_       uint32
	Size    uint64
}

// Flags of a Stack.
const (
	StackInUse   = 1
	StackDisable = 2
)

// Holds reports whether an address is within the stack.
func (s Stack) Holds(addr uint64) bool { return addr-s.Address < s.Size }

// Registers is struct sigcontext.
type Registers struct {
	R8, R9, R10, R11, R12, R13, R14, R15      uint64
	DI, SI, BP, BX, DX, AX, CX, SP, IP, Flags uint64
	CS, GS, FS, SS                            uint16
	Code, Vector                              uint64 // vector and error code of the trap
	OldMask                                   uint64
	FaultAddress                              uint64
	VectorState                               uint64 // address of the saved vector registers; 0: none
	_                                         [8]uint64
}

// Info is siginfo_t, with the fields of the signals that the kernel sends.
type Info struct {
	Number Number
	Errno  int32
	Code   int32
	_      int32
	// Value is the address of a fault, or the address after a system call. For a sent signal, it is the sender's PID, with
	// the UID in the upper half.
	Value uint64
	Call  uint32 // for System: the number of the system call
	Arch  uint32 // for System: AUDIT_ARCH value of the system call
	_     [12]uint64
}

// Values of si_code (sigaction(2)).
const (
	CodeUser       = 0    // a signal sent by kill(2)
	CodeKernel     = 0x80 // a signal of the kernel without further information
	CodeTimer      = -2
	CodeThread     = -6 // a signal sent by tgkill(2)
	CodeNotMapped  = 1  // Segment: the address is not mapped
	CodeNotAllowed = 2  // Segment: the mapping does not allow the access
	CodeDivide     = 1  // FloatTrap: integer division by zero
	CodeFloat      = 7  // FloatTrap: invalid operation
	CodeOperand    = 2  // Illegal: illegal operand
	CodeBreakpoint = 1  // Trap: breakpoint
	CodeAlign      = 1  // Bus: unaligned address
	CodeSeccomp    = 1  // System: a call trapped by seccomp; RAX still contains its number
)

// ArchAMD64 is AUDIT_ARCH_X86_64: seccomp(2).
const ArchAMD64 = 0xc000_003e

// Room returns the addresses for a signal frame and, above it, for vector registers of vectorSize bytes, on a stack that
// ends at top. The stack is aligned as after a call (AMD64 ABI, 3.2.2). The vector registers are aligned to 64 bytes, for
// XSAVE.
func Room(top, vectorSize uint64) (frame, vector uint64) {
	const redZone = 128 // size of the area below the stack pointer that leaf functions use
	vector = (top - redZone - vectorSize) &^ 63
	return (vector-FrameSize)&^15 - 8, vector
}

// Save copies the registers of a trap frame into r.
func (r *Registers) Save(f *amd64.Frame) {
	*r = Registers{
		R8: f.R8, R9: f.R9, R10: f.R10, R11: f.R11, R12: f.R12, R13: f.R13, R14: f.R14, R15: f.R15,
		DI: f.DI, SI: f.SI, BP: f.BP, BX: f.BX, DX: f.DX, AX: f.AX, CX: f.CX, SP: f.SP, IP: f.IP,
		Flags: f.Flags, CS: uint16(f.CS), SS: uint16(f.SS), Code: f.Code, Vector: f.Vector,
	}
}

// Restore copies the registers of r into a trap frame. Of the flags it restores only those that a program may
// change; system flags keep their values.
func (r *Registers) Restore(f *amd64.Frame) {
	const mayChange = 0x0000_0000_0005_0dd5 // the flags AC, RF, OF, DF, TF, SF, ZF, AF, PF and CF
	f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15 = r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15
	f.DI, f.SI, f.BP, f.BX, f.DX, f.AX, f.CX, f.SP, f.IP = r.DI, r.SI, r.BP, r.BX, r.DX, r.AX, r.CX, r.SP, r.IP
	f.Flags = f.Flags&^mayChange | r.Flags&mayChange
}
