package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/task/signal"
)

// The frame of a signal handler on the stack of x86-64: struct rt_sigframe of Linux (arch/x86/include/asm/sigframe.h,
// uapi/asm/sigcontext.h, uapi/asm/ucontext.h). From the stack pointer upwards: the return address, a ucontext, a
// siginfo, and at a multiple of 64 the vector registers.

// Offsets and sizes in bytes.
const (
	frameContext = 8
	contextFlags = 0
	contextStack = 16
	contextRegs  = 40
	contextCS    = contextRegs + 18*8
	contextCode  = contextCS + 8
	contextVec   = contextCS + 40 // address of the vector registers
	contextMask  = contextRegs + 256
	contextSize  = contextMask + setSize
	frameInfo    = frameContext + contextSize
	infoSize     = 128
	frameSize    = frameInfo + infoSize

	redZone     = 128 // below the stack pointer, belongs to the interrupted function (System V ABI, 3.2.2)
	vectorAlign = 64
)

// Marks in the vector registers, for programs that search the frame for the extended state (struct
// _fpx_sw_bytes).
const (
	reservedAt     = 464 // offset in the legacy area of XSAVE
	magic1, magic2 = 0x46505853, 0x46505845
	sizeofMagic2   = 4

	hasExtended, hasSegments = 1, 6 // flags of uc_flags
)

// registers returns the general registers in the order of struct sigcontext.
func registers(f *amd64.Frame) [18]*uint64 {
	return [18]*uint64{
		&f.R8, &f.R9, &f.R10, &f.R11, &f.R12, &f.R13, &f.R14, &f.R15,
		&f.DI, &f.SI, &f.BP, &f.BX, &f.DX, &f.AX, &f.CX, &f.SP, &f.IP, &f.Flags,
	}
}

// handle makes the thread run a handler. If its stack cannot be written, the process gets SIGSEGV.
func (t *Task) handle(d signal.Delivery) {
	t.abortSection()
	f := t.thread.Registers()
	sp := f.SP - redZone
	if d.Action.Flags&signal.OnStack != 0 && t.altStack.Flags&linux.SS_DISABLE == 0 && !t.onAltStack(f.SP) {
		sp = t.altStack.Addr + t.altStack.Size
	}
	size := uint64(t.thread.VectorSize())
	vectorsAt := (sp - size - sizeofMagic2) &^ (vectorAlign - 1)
	at := (vectorsAt-frameSize)&^15 - 8
	b := t.frameBuffer()[:vectorsAt-at+size+sizeofMagic2]
	clear(b[:vectorsAt-at])
	t.frame(b, d, f, vectorsAt)
	vectors := b[vectorsAt-at:]
	t.thread.Vectors(vectors[:size])
	mark(vectors)
	if (memory{t}).Write(at, b) != 0 || d.Action.Flags&linux.SA_RESTORER == 0 {
		t.lost(d.Info.Signal)
		return
	}
	f.IP, f.SP = d.Action.Handler, at
	f.DI, f.SI, f.DX, f.AX = uint64(d.Info.Signal), at+frameInfo, at+frameContext, 0
	f.Flags &^= amd64.FlagTrap | amd64.FlagDirection
	t.thread.Restore()
}

// lost ends the process because a handler cannot run. If the signal is SIGSEGV itself, or its handler has no stack
// either, the process dies.
func (t *Task) lost(n signal.Number) {
	if n == signal.Segmentation {
		t.process.system.mu.Lock()
		t.process.end(int32(signal.Segmentation))
		t.process.system.mu.Unlock()
		return
	}
	t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
}

// frameBuffer returns a buffer for the largest frame.
func (t *Task) frameBuffer() []byte {
	if t.frames == nil {
		const padding = vectorAlign + 8
		t.frames = make([]byte, frameSize+padding+t.thread.VectorSize()+sizeofMagic2)
	}
	return t.frames
}

// frame encodes the frame without the vector registers in zeroed memory.
func (t *Task) frame(b []byte, d signal.Delivery, f *amd64.Frame, vectorsAt uint64) {
	le := binary.LittleEndian
	le.PutUint64(b, d.Action.Restorer)
	c := b[frameContext:]
	le.PutUint64(c[contextFlags:], hasExtended|hasSegments)
	stack := t.altStack
	if t.onAltStack(f.SP) {
		stack.Flags |= linux.SS_ONSTACK
	}
	stack.Put(c[contextStack:])
	for i, r := range registers(f) {
		le.PutUint64(c[contextRegs+8*i:], *r)
	}
	le.PutUint16(c[contextCS:], amd64.UserCodeSelector)
	le.PutUint16(c[contextCS+6:], amd64.UserDataSelector)
	le.PutUint64(c[contextCode:], f.Code)
	if f.Vector < amd64.VectorException {
		le.PutUint64(c[contextCode+8:], f.Vector)
	}
	le.PutUint64(c[contextCode+16:], uint64(d.Mask))
	le.PutUint64(c[contextCode+24:], t.thread.FaultAddress())
	le.PutUint64(c[contextVec:], vectorsAt)
	le.PutUint64(c[contextMask:], uint64(d.Mask))
	putInfo(b[frameInfo:], d.Info)
}

// mark adds the marks of the extended state to vector registers. The last bytes of b are the room for the second mark.
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

// sigreturn restores the registers and the mask from the frame of a handler (sigreturn(2)). A frame that cannot be read
// causes SIGSEGV. The machine refuses values that ring 3 must not have.
func (t *Task) sigreturn() {
	le := binary.LittleEndian
	f := t.thread.Registers()
	c := t.frameBuffer()[:contextSize]
	m := memory{t}
	if m.Read(c, f.SP-8+frameContext) != 0 {
		t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
		return
	}
	for i, r := range registers(f) {
		*r = le.Uint64(c[contextRegs+8*i:])
	}
	if at := le.Uint64(c[contextVec:]); at != 0 {
		b := t.frameBuffer()[contextSize:][:t.thread.VectorSize()]
		if m.Read(b, at) != 0 {
			t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
			return
		}
		t.thread.SetVectors(b)
	}
	t.altStack = linux.ParseSigStack(c[contextStack:])
	t.altStack.Flags &^= linux.SS_ONSTACK
	t.thread.Restore()
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	t.signals.SetMask(signal.Set(le.Uint64(c[contextMask:])))
	if t.signals.Deliverable() {
		t.alerted.Store(true)
	}
}

// putInfo encodes a siginfo_t (sigaction(2)).
func putInfo(b []byte, i signal.Info) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(i.Signal))
	le.PutUint32(b[4:], uint32(i.Errno))
	le.PutUint32(b[8:], uint32(i.Code))
	switch {
	case i.Addr != 0:
		le.PutUint64(b[16:], i.Addr)
		le.PutUint64(b[24:], i.Value) // SIGSYS
	default:
		le.PutUint32(b[16:], uint32(i.PID))
		le.PutUint32(b[20:], i.UID)
		if i.Signal == signal.Child {
			le.PutUint32(b[24:], uint32(i.Status))
			le.PutUint64(b[32:], i.User)
			le.PutUint64(b[40:], i.System)
		} else {
			le.PutUint64(b[24:], i.Value)
		}
	}
}
