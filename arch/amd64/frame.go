package amd64

// Frame is what is saved of a thread when it enters the kernel, by a trap or by
// a call; the order is that of the pushes in the entry code. Everything else
// (the floating point and vector registers) goes to another place by XSAVE.
type Frame struct {
	R15, R14, R13, R12, R11, R10, R9, R8 uint64
	DI, SI, BP, BX, DX, CX, AX           uint64

	Vector uint64 // of the trap, or VectorCall
	Code   uint64 // the error code, 0 for traps without

	// What the processor pushes: SDM volume 3, 6.14.2.
	IP, CS, Flags, SP, SS uint64
}

// FrameSize is the size of a Frame; a multiple of 16, as the processor aligns it.
const FrameSize = 22 * 8

// VectorCall marks a frame of a thread that entered by a call: it has lost its
// vector registers, but for X15, which is zero.
const VectorCall = 0x100

// Vectors: SDM volume 3, table 6-1.
const (
	VectorDivide     = 0
	VectorDebug      = 1
	VectorNMI        = 2
	VectorBreakpoint = 3
	VectorInvalid    = 6
	VectorDouble     = 8
	VectorStack      = 12
	VectorProtection = 13
	VectorPage       = 14
	VectorX87        = 16
	VectorAlign      = 17
	VectorMachine    = 18
	VectorSIMD       = 19

	VectorException = 32 // those below are exceptions

	// Interrupts of the two 8259s, which are all masked; what still arrives is
	// spurious.
	VectorLegacy = 32

	// Interrupts of devices.
	VectorDevice      = 64
	VectorDeviceCount = 48

	// What comes although a device's interrupt is being served, by its higher priority, the
	// upper four bits: SDM volume 3, 11.8.3.1.
	VectorTimer = 112
	VectorKick  = 113 // another CPU wants this one to look for work

	VectorSpurious = 127 // of the local APIC, whose low four bits have to be set

	VectorCount = 128
)

// Bits of the error code of a page fault: SDM volume 3, 4.7.
const (
	FaultPresent = 1 << 0 // the page is there and does not allow this
	FaultWrite   = 1 << 1
	FaultFetch   = 1 << 4
)

// VectorSyscall marks a frame of a thread that entered by a SYSCALL instruction; it
// has vector registers.
const VectorSyscall = 0x102

// VectorSignal marks a frame that was put together when a signal handler
// returned; it has vector registers.
const VectorSignal = 0x101
