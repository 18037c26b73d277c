package amd64

// Frame is a trap frame: the registers of a thread that has entered the kernel by a trap or a call. The fields are in
// memory order, which is the reverse of the order in which they are pushed. XSAVE saves the x87 and vector registers
// separately.
type Frame struct {
	R15, R14, R13, R12, R11, R10, R9, R8 uint64
	DI, SI, BP, BX, DX, CX, AX           uint64

	Vector uint64 // vector of the trap, or VectorCall
	Code   uint64 // the error code; 0 for traps without one

	// Pushed by the processor: SDM volume 3, 6.14.2.
	IP, CS, Flags, SP, SS uint64
}

// FrameSize is the size of a Frame in bytes. It is a multiple of 16, the alignment that the processor uses.
const FrameSize = 22 * 8

// VectorCall marks the frame of a thread of ring 0 that has called the kernel. Its vector registers are not saved. On
// return X15 is zero, and the other vector registers are undefined.
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

	VectorException = 32 // vectors below are exceptions

	// VectorLegacy is the first vector of the two 8259 interrupt controllers. All their interrupts are masked, so any
	// interrupt with these vectors is spurious.
	VectorLegacy = 32

	// VectorDevice is the first of VectorDeviceCount vectors for devices.
	VectorDevice      = 64
	VectorDeviceCount = 48

	// VectorTimer and VectorKick can interrupt a handler of a device interrupt: their priority, the upper four bits of
	// the vector, is higher (SDM volume 3, 11.8.3.1).
	VectorTimer = 112
	VectorKick  = 113 // sent by another CPU: this CPU enters the kernel and looks for work

	VectorSpurious = 127 // spurious interrupt of the local APIC; its low four bits must be set

	VectorCount = 128
)

// Bits of the error code of a page fault: SDM volume 3, 4.7.
const (
	FaultPresent = 1 << 0 // the page is mapped but does not allow the access
	FaultWrite   = 1 << 1
	FaultUser    = 1 << 2
	FaultFetch   = 1 << 4
)

// VectorSyscall marks the frame of a thread that has entered by a SYSCALL instruction. Its vector registers are
// saved.
const VectorSyscall = 0x102

// CodeUser is the error code in the frame of an interrupt that arrived in ring 3. The entry code has already moved the
// thread to the end of the function that entered ring 3. So the thread's vector registers are not saved. An interrupt
// in ring 0 has code 0.
const CodeUser = 1

// VectorSignal marks a frame that rt_sigreturn(2) has built from a signal frame. Its vector registers are saved.
const VectorSignal = 0x101
