package signal

import "loam/arch/amd64"

// Frame is what a handler finds on its stack, the address of whose first field
// it returns to: struct rt_sigframe of Linux on x86-64. The vector registers, if
// there are any to be kept, stand above, where Registers.VectorState points. A handler
// may change the registers in it; rt_sigreturn takes them from there.
type Frame struct {
	Return  uint64
	Context Context
	Info    Info
}

// FrameSize is the size of a Frame; the others are where its parts are.
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
	Mask        Set // before the handler was called
}

// Stack is stack_t: sigaltstack(2).
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

// Holds reports whether an address is in the stack.
func (s Stack) Holds(addr uint64) bool { return addr-s.Address < s.Size }

// Registers is struct sigcontext.
type Registers struct {
	R8, R9, R10, R11, R12, R13, R14, R15      uint64
	DI, SI, BP, BX, DX, AX, CX, SP, IP, Flags uint64
	CS, GS, FS, SS                            uint16
	Code, Vector                              uint64 // of the trap
	OldMask                                   uint64
	FaultAddress                              uint64
	VectorState                               uint64 // an address; 0: there is none
	_                                         [8]uint64
}

// Info is siginfo_t, with what the signals that the kernel makes have in it.
type Info struct {
	Number Number
	Errno  int32
	Code   int32
	_      int32
	Value  uint64 // the address of a fault, or behind a call; or who sent it: PID, and UID in the upper half
	Call   uint32 // System: its number
	Arch   uint32 // System: whose number that is
	_      [12]uint64
}

// Codes: sigaction(2).
const (
	CodeUser       = 0    // kill(2)
	CodeKernel     = 0x80 // nobody knows better
	CodeTimer      = -2
	CodeThread     = -6 // tgkill(2)
	CodeNotMapped  = 1  // Segment: there is nothing
	CodeNotAllowed = 2  // Segment: it does not allow this
	CodeDivide     = 1  // FloatTrap: by the integer 0
	CodeFloat      = 7  // FloatTrap: an invalid operation
	CodeOperand    = 2  // Illegal
	CodeBreakpoint = 1  // Trap
	CodeAlign      = 1  // Bus
	CodeSeccomp    = 1  // System: the number of the call is in AX, as it was
)

// ArchAMD64 is AUDIT_ARCH_X86_64: seccomp(2).
const ArchAMD64 = 0xc000_003e

// Room is where below an address on a stack a Frame goes, and above it the state
// of the vector registers, of vectorSize bytes. The stack is aligned as it is
// behind a call (AMD64 ABI, 3.2.2), the vector state as XSAVE wants it.
func Room(top, vectorSize uint64) (frame, vector uint64) {
	const redZone = 128 // of a function that a handler interrupts on its own stack
	vector = (top - redZone - vectorSize) &^ 63
	return (vector-FrameSize)&^15 - 8, vector
}

// Save fills r from what a thread was interrupted with.
func (r *Registers) Save(f *amd64.Frame) {
	*r = Registers{
		R8: f.R8, R9: f.R9, R10: f.R10, R11: f.R11, R12: f.R12, R13: f.R13, R14: f.R14, R15: f.R15,
		DI: f.DI, SI: f.SI, BP: f.BP, BX: f.BX, DX: f.DX, AX: f.AX, CX: f.CX, SP: f.SP, IP: f.IP,
		Flags: f.Flags, CS: uint16(f.CS), SS: uint16(f.SS), Code: f.Code, Vector: f.Vector,
	}
}

// Restore is what a thread goes on with. Of the flags those of arithmetic are
// taken, and that for single steps; what belongs to the kernel stays as it is.
func (r *Registers) Restore(f *amd64.Frame) {
	const mayChange = 0x0000_0000_0005_0dd5 // AC RF OF DF TF SF ZF AF PF CF
	f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15 = r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15
	f.DI, f.SI, f.BP, f.BX, f.DX, f.AX, f.CX, f.SP, f.IP = r.DI, r.SI, r.BP, r.BX, r.DX, r.AX, r.CX, r.SP, r.IP
	f.Flags = f.Flags&^mayChange | r.Flags&mayChange
}
