// Package frame has the frame of a signal handler on the stack of x86-64: struct rt_sigframe of Linux
// (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h, uapi/asm/ucontext.h). From the stack pointer upwards: the return address, a
// ucontext, a siginfo, and at a multiple of 64 the vector registers.
package frame

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/task/machine"
	"loam/task/signal"
)

// Offsets and sizes in a signal frame, in bytes.
const (
	frameContext = 8
	contextFlags = 0
	contextStack = 16
	contextRegs  = 40
	contextCS    = contextRegs + registersSize
	contextSS    = 6 // offset from contextCS
	contextCode  = contextCS + 8
	contextVec   = contextCS + 40 // offset of the field with the address of the saved vector registers
	contextMask  = contextRegs + 256
	contextSize  = contextMask + setSize
	setSize      = 8
	frameInfo    = frameContext + contextSize
	frameSize    = frameInfo + signal.InfoSize

	// size of the red zone below the stack pointer, which belongs to the interrupted function (System V ABI, 3.2.2)
	redZone     = 128
	vectorAlign = 64
)

// Marks that Build stores with the vector registers. A program that searches the frame for the extended state
// finds it by these marks (struct _fpx_sw_bytes).
const (
	reservedAt     = 464 // offset of the bytes for software in the legacy area of XSAVE
	magic1, magic2 = 0x46505853, 0x46505845
	sizeofMagic2   = 4

	// bits of uc_flags: the frame has extended state and segment registers, and the stack segment is restored as it is
	hasExtended, hasSegments, strictStack = 1, 2, 4
)

const registersSize = 18 * 8

// putRegisters stores the general registers in the order of struct sigcontext. loadRegisters reads them.
func putRegisters(b *[registersSize]byte, f *amd64.Frame) {
	le := binary.LittleEndian
	le.PutUint64(b[0*8:], f.R8)
	le.PutUint64(b[1*8:], f.R9)
	le.PutUint64(b[2*8:], f.R10)
	le.PutUint64(b[3*8:], f.R11)
	le.PutUint64(b[4*8:], f.R12)
	le.PutUint64(b[5*8:], f.R13)
	le.PutUint64(b[6*8:], f.R14)
	le.PutUint64(b[7*8:], f.R15)
	le.PutUint64(b[8*8:], f.DI)
	le.PutUint64(b[9*8:], f.SI)
	le.PutUint64(b[10*8:], f.BP)
	le.PutUint64(b[11*8:], f.BX)
	le.PutUint64(b[12*8:], f.DX)
	le.PutUint64(b[13*8:], f.AX)
	le.PutUint64(b[14*8:], f.CX)
	le.PutUint64(b[15*8:], f.SP)
	le.PutUint64(b[16*8:], f.IP)
	le.PutUint64(b[17*8:], f.Flags)
}

func loadRegisters(f *amd64.Frame, b *[registersSize]byte) {
	le := binary.LittleEndian
	f.R8 = le.Uint64(b[0*8:])
	f.R9 = le.Uint64(b[1*8:])
	f.R10 = le.Uint64(b[2*8:])
	f.R11 = le.Uint64(b[3*8:])
	f.R12 = le.Uint64(b[4*8:])
	f.R13 = le.Uint64(b[5*8:])
	f.R14 = le.Uint64(b[6*8:])
	f.R15 = le.Uint64(b[7*8:])
	f.DI = le.Uint64(b[8*8:])
	f.SI = le.Uint64(b[9*8:])
	f.BP = le.Uint64(b[10*8:])
	f.BX = le.Uint64(b[11*8:])
	f.DX = le.Uint64(b[12*8:])
	f.AX = le.Uint64(b[13*8:])
	f.CX = le.Uint64(b[14*8:])
	f.SP = le.Uint64(b[15*8:])
	f.IP = le.Uint64(b[16*8:])
	f.Flags = le.Uint64(b[17*8:])
}

// Signal is a signal with the state of the interrupted thread, as a frame records it.
type Signal struct {
	signal.Delivery
	Stack  linux.SigStack // alternate stack of the thread, with SS_ONSTACK if the thread is using it
	OnNext bool           // the handler runs on the alternate stack
	Fault  uint64         // address of the last page fault
}

// BufferSize returns the size of the buffer that Build and Context need, for vector registers of a size.
func BufferSize(vectors int) int {
	const padding = vectorAlign + 8
	return frameSize + padding + vectors + sizeofMagic2
}

// Build encodes a frame in a buffer, including the vector registers of the thread. It returns the encoding and the address
// at which the frame belongs.
func Build(buffer []byte, t machine.Thread, d Signal) (b []byte, at uint64) {
	f := t.Registers()
	sp := f.SP - redZone
	if d.OnNext {
		sp = d.Stack.Addr + d.Stack.Size
	}
	size := uint64(t.VectorSize())
	vectorsAt := (sp - size - sizeofMagic2) &^ (vectorAlign - 1)
	at = (vectorsAt-frameSize)&^15 - 8
	b = buffer[:vectorsAt-at+size+sizeofMagic2]
	clear(b[:vectorsAt-at])
	put(b, &d, f, vectorsAt)
	vectors := b[vectorsAt-at:]
	t.Vectors(vectors[:size])
	mark(vectors)
	return b, at
}

// Enter sets the registers of a thread so that it begins the handler whose frame is at an address.
func Enter(t machine.Thread, d signal.Delivery, at uint64) {
	f := t.Registers()
	f.IP, f.SP = d.Action.Handler, at
	f.DI, f.SI, f.DX, f.AX = uint64(d.Info.Signal), at+frameInfo, at+frameContext, 0
	f.Flags &^= amd64.FlagTrap | amd64.FlagDirection
	t.Restore()
}

// put encodes the frame without the vector registers. The memory of b is zero before.
func put(b []byte, d *Signal, f *amd64.Frame, vectorsAt uint64) {
	le := binary.LittleEndian
	le.PutUint64(b, d.Action.Restorer)
	c := b[frameContext:]
	d.Stack.Put(c[contextStack:])
	putRegisters((*[registersSize]byte)(c[contextRegs:]), f)
	code, stack := uint64(amd64.UserCodeSelector), uint64(amd64.UserDataSelector)
	if f.Vector == amd64.VectorProtection && f.CS != 0 { // Selectors may have refused others
		code, stack = f.CS, f.SS
	}
	flags := uint64(hasExtended | hasSegments)
	if code == amd64.UserCodeSelector { // else a handler that repairs only CS returns with a valid SS, as on Linux
		flags |= strictStack
	}
	le.PutUint64(c[contextFlags:], flags)
	le.PutUint16(c[contextCS:], uint16(code))
	le.PutUint16(c[contextCS+contextSS:], uint16(stack))
	le.PutUint64(c[contextCode:], f.Code)
	if f.Vector < amd64.VectorException {
		le.PutUint64(c[contextCode+8:], f.Vector)
	}
	le.PutUint64(c[contextCode+16:], uint64(d.Mask))
	le.PutUint64(c[contextCode+24:], d.Fault)
	le.PutUint64(c[contextVec:], vectorsAt)
	le.PutUint64(c[contextMask:], uint64(d.Mask))
	d.Info.Put(b[frameInfo:])
}

// mark stores FP_XSTATE_MAGIC1 and FP_XSTATE_MAGIC2 in b, the saved vector registers of a signal frame. They mark the frame
// as one with extended state (AVX and later). The second is in the last bytes of b.
func mark(b []byte) {
	const header = 512
	le := binary.LittleEndian
	size := len(b) - sizeofMagic2
	le.PutUint32(b[reservedAt:], magic1)
	le.PutUint32(b[reservedAt+4:], uint32(len(b)))
	copy(b[reservedAt+8:reservedAt+16], b[header:header+8])
	le.PutUint32(b[reservedAt+16:], uint32(size))
	le.PutUint32(b[size:], magic2)
}

// Context is the part of a frame that sigreturn(2) reads.
type Context []byte

// ReadContext reads the context of the handler that a thread leaves into a buffer. The
// function read copies memory of the process.
func ReadContext(buffer []byte, t machine.Thread, read func(b []byte, addr uint64) linux.Errno) (Context, linux.Errno) {
	c := buffer[:contextSize]
	return c, read(c, t.Registers().SP-8+frameContext)
}

// Registers sets the general registers of a thread.
func (c Context) Registers(f *amd64.Frame) {
	loadRegisters(f, (*[registersSize]byte)(c[contextRegs:]))
}

// Selectors sets the segments of code and stack. Ring 3 has only one of each. For other segments, Selectors returns false, and sets
// the exception that the return to ring 3 causes on Linux.
func (c Context) Selectors(f *amd64.Frame) bool {
	const ring3, local = 3, 4
	le := binary.LittleEndian
	f.CS, f.SS = uint64(le.Uint16(c[contextCS:])|ring3), uint64(le.Uint16(c[contextCS+contextSS:])|ring3)
	if f.CS == amd64.UserCodeSelector && le.Uint64(c[contextFlags:])&strictStack == 0 {
		f.SS = amd64.UserDataSelector
	}
	switch f.Code = 0; {
	case f.CS == amd64.UserCodeSelector && f.SS == amd64.UserDataSelector:
		return true
	case f.SS&local != 0: // Linux then does not know the selector that caused the exception
	case f.CS != amd64.UserCodeSelector:
		f.Code = f.CS &^ ring3
	default:
		f.Code = f.SS &^ ring3
	}
	f.Vector = amd64.VectorProtection
	return false
}

// Vectors returns the address of the vector registers; 0: none.
func (c Context) Vectors() uint64 { return binary.LittleEndian.Uint64(c[contextVec:]) }

// Rest returns the part of a buffer that the context does not use.
func Rest(buffer []byte) []byte { return buffer[contextSize:] }

// Stack returns the alternate stack.
func (c Context) Stack() linux.SigStack {
	s := linux.ParseSigStack(c[contextStack:])
	s.Flags &^= linux.SS_ONSTACK
	return s
}

// Mask returns the blocked signals.
func (c Context) Mask() signal.Set { return signal.Set(binary.LittleEndian.Uint64(c[contextMask:])) }
