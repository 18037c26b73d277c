// Entry to ring 3, and return from it.
//
// loam/kernel/user.enter runs a thread in ring 3, and returns when the thread leaves ring 3: by a system
// call, an exception or an interrupt. The registers of ring 3 are saved in the context of the thread
// (loam/kernel/user.page). A context is a physical page that is accessed through the window, the mapping
// of all physical memory. The processor can therefore store a frame there at any time. It could not do
// so in the Go heap, where a page may be absent for a moment.
//
// While a thread is in ring 3, entry 1 of the interrupt stack table points to the end of the frame in the
// context, and loam/kernel.cpu holds the registers of the goroutine. Package kernel never sees a thread in
// ring 3: an interrupt first returns the thread to the end of enter, and is then served as if it had occurred
// in ring 0. So only interrupts take the kernel's lock.
//
// Vector registers: Go code uses SSE and AVX, so their registers are saved and loaded with moves on each
// entry to ring 3 and each return. The x87 state and the base of GS stay in the processor until the CPU enters ring 3 for another
// context, loads the registers of an interrupted thread, or gets a request of another CPU. Then they are saved, and cpu_user
// is cleared. cpu_user is the address of a context if and only if page_live of that context is the number
// of the CPU plus 1. With AVX-512, which Go code also uses, XSAVE and XRSTOR transfer all state on each
// entry and return, the base of GS is saved on each return, and cpu_user is always 0.
//
// After CLI, the code accesses only the context, loam/kernel.cpu and the CPU's stack. Their pages are
// always present. copyDirect is the exception: a page fault in it ends the copy.

#include "go_asm.h"
#include "textflag.h"

// Offsets of the fields of loam/kernel.cpu, the structure of a CPU. A test compares them with the Go type.
#define cpu_frameEnd	8
#define cpu_scratch	16
#define cpu_stack	24
#define cpu_ist1	(48+0x24)
#define cpu_root	160
#define cpu_active	168
#define cpu_fsBase	176
#define cpu_callerSP	184
#define cpu_callerBP	192
#define cpu_callerG	200
#define cpu_user	208
#define cpu_number	216
#define cpu_last	224
#define cpu_copying	232

// Offsets of the fields of loam/kernel/user.page, which holds the state of a thread in ring 3 and begins with an
// amd64.Frame. A test compares them with the Go type.
#define frameSize	176
#define frame_vector	120
#define frame_ip	136
#define frame_cs	144
#define frame_flags	152
#define frame_ss	168
#define page_fault	176
#define page_fsBase	184
#define page_gsBase	192
#define page_root	200
#define page_active	208
#define page_stop	216
#define page_cpu	220
#define page_live	224
#define page_mxcsr	228
#define page_watched	232
#define page_placed	236
#define page_used	240
#define page_vector	256
#define page_wide	3072
#define page_debug	3584
#define page_control	3616
#define page_status	3624
#define page_seat	3632

// Constants of loam/arch/amd64 and loam/kernel/user: selectors, flags, and the vectors that enter returns.
#define selectorCode	0x08
#define selectorData	0x10
#define userData	0x2b
#define userCode	0x33
#define flagsUser	0x254dd5
#define flagsAlways	0x202
#define exceptions	32
#define vectorDebug	1
#define vectorProtection	13
#define vectorPage	14
#define vectorSyscall	0x102
#define vectorStopped	0x103
#define vectorElsewhere	0x104
#define vectorMoved	0x105
#define vectorUnseated	0x106
#define vectorsAll	0
#define vectorsSSE	1
#define x87	1
#define kernelGS	0xc0000102
#define codeUser	1

#define PUSH_REGISTERS \
	PUSHQ	AX; PUSHQ	CX; PUSHQ	DX; PUSHQ	BX; \
	PUSHQ	BP; PUSHQ	SI; PUSHQ	DI; \
	PUSHQ	R8; PUSHQ	R9; PUSHQ	R10; PUSHQ	R11; \
	PUSHQ	R12; PUSHQ	R13; PUSHQ	R14; PUSHQ	R15

#define POP_REGISTERS \
	POPQ	R15; POPQ	R14; POPQ	R13; POPQ	R12; \
	POPQ	R11; POPQ	R10; POPQ	R9; POPQ	R8; \
	POPQ	DI; POPQ	SI; POPQ	BP; \
	POPQ	BX; POPQ	DX; POPQ	CX; POPQ	AX

// enter runs a thread in ring 3, and returns the vector of the reason why it has left ring 3.
//
//	func enter(page uintptr) (vector uint64)
TEXT loam∕kernel∕user·enter<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, DI
	CLI
	// If the runtime has requested preemption before CLI, its signal was delivered already and would
	// not interrupt ring 3: return at once. A later request interrupts ring 3.
	CMPQ	g_stackguard0(R14), $const_stackPreempt
	JEQ	stopped
	// Publish the CPU number, then check whether loam/kernel/user.Kick requests the thread to leave
	// ring 3. Kick first stores its request and then reads the CPU number, so either enter sees the
	// request or Kick sees the CPU.
	MOVL	cpu_number(GS), CX
	INCL	CX
	XCHGL	CX, page_cpu(DI)
	CMPL	page_stop(DI), $0
	JNE	stopped
	// IRET and SYSRET to an address outside the lower half would fault in ring 0 (SDM volume 2,
	// SYSRET). Report it as a fault of ring 3 instead.
	MOVQ	frame_ip(DI), CX
	SHRQ	$47, CX
	JNE	wild
	// A watched context (restartable sequences, a CPU set) returns if another context has run in ring 3 on
	// this CPU since, or if this context last ran on another CPU. If neither is so, the CPU is still allowed:
	// a change of the CPU set clears page_placed. A context that returns from a system call is in no critical
	// section (rseq(2)), so only another CPU matters to it.
	CMPL	page_watched(DI), $0
	JEQ	here
	MOVL	cpu_number(GS), CX
	INCL	CX
	CMPL	CX, page_placed(DI)
	JNE	moved
	CMPQ	DI, cpu_last(GS)
	JEQ	here
	CMPQ	frame_vector(DI), $vectorSyscall
	JNE	moved
here:
	MOVQ	DI, cpu_last(GS)

	XORL	R10, R10
	CMPB	loam∕kernel·userVectors(SB), $vectorsAll
	JEQ	foreign
	CMPQ	DI, cpu_user(GS)
	JEQ	known
	CMPL	page_live(DI), $0
	JNE	elsewhere
	MOVL	$x87, AX
	XORL	DX, DX
	MOVQ	cpu_user(GS), R9
	TESTQ	R9, R9
	JEQ	load
	XSAVE64	page_vector(R9)
	MOVL	$kernelGS, CX
	RDMSR
	MOVL	AX, page_gsBase(R9)
	MOVL	DX, (page_gsBase+4)(R9)
	MOVL	$0, page_live(R9)
	MOVL	$x87, AX
	XORL	DX, DX
load:
	XRSTOR64	page_vector(DI)
	MOVL	cpu_number(GS), CX
	INCL	CX
	MOVL	CX, page_live(DI)
	MOVQ	DI, cpu_user(GS)
foreign:
	// The segment registers contain the selectors of the previous context: clear them.
	INCL	R10
	XORL	CX, CX
	MOVW	CX, DS
	MOVW	CX, ES
	MOVW	CX, FS
known:
	MOVQ	page_root(DI), CX
	CMPQ	CX, cpu_root(GS)
	JEQ	space
	// Add the CPU to the set of CPUs that use the new address space before CR3 is written, and remove
	// it from the set of the old space afterwards: the write drops all translations of the old space.
	MOVL	cpu_number(GS), R8
	MOVQ	page_active(DI), DX
	LOCK
	BTSQ	R8, 0(DX)
	MOVQ	CX, CR3
	MOVQ	CX, cpu_root(GS)
	XCHGQ	DX, cpu_active(GS)
	TESTQ	DX, DX
	JEQ	space
	LOCK
	BTRQ	R8, 0(DX)
space:
	CMPB	loam∕kernel·userVectors(SB), $vectorsSSE
	JCS	all
	LDMXCSR	page_mxcsr(DI)
	JEQ	narrow
	VMOVDQU	(page_wide+0)(DI), Y0
	VMOVDQU	(page_wide+32)(DI), Y1
	VMOVDQU	(page_wide+64)(DI), Y2
	VMOVDQU	(page_wide+96)(DI), Y3
	VMOVDQU	(page_wide+128)(DI), Y4
	VMOVDQU	(page_wide+160)(DI), Y5
	VMOVDQU	(page_wide+192)(DI), Y6
	VMOVDQU	(page_wide+224)(DI), Y7
	VMOVDQU	(page_wide+256)(DI), Y8
	VMOVDQU	(page_wide+288)(DI), Y9
	VMOVDQU	(page_wide+320)(DI), Y10
	VMOVDQU	(page_wide+352)(DI), Y11
	VMOVDQU	(page_wide+384)(DI), Y12
	VMOVDQU	(page_wide+416)(DI), Y13
	VMOVDQU	(page_wide+448)(DI), Y14
	VMOVDQU	(page_wide+480)(DI), Y15
	JMP	loaded
narrow:
	MOVOU	(page_wide+0)(DI), X0
	MOVOU	(page_wide+32)(DI), X1
	MOVOU	(page_wide+64)(DI), X2
	MOVOU	(page_wide+96)(DI), X3
	MOVOU	(page_wide+128)(DI), X4
	MOVOU	(page_wide+160)(DI), X5
	MOVOU	(page_wide+192)(DI), X6
	MOVOU	(page_wide+224)(DI), X7
	MOVOU	(page_wide+256)(DI), X8
	MOVOU	(page_wide+288)(DI), X9
	MOVOU	(page_wide+320)(DI), X10
	MOVOU	(page_wide+352)(DI), X11
	MOVOU	(page_wide+384)(DI), X12
	MOVOU	(page_wide+416)(DI), X13
	MOVOU	(page_wide+448)(DI), X14
	MOVOU	(page_wide+480)(DI), X15
	JMP	loaded
all:
	MOVL	$-1, AX
	MOVL	$-1, DX
	XRSTOR64	page_vector(DI)
loaded:
	// Between entry and return, page_used is the time in ring 3 before the entry, minus the time of the entry.
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	SUBQ	AX, page_used(DI)
	MOVQ	SP, cpu_callerSP(GS)
	MOVQ	BP, cpu_callerBP(GS)
	MOVQ	R14, cpu_callerG(GS)
	LEAQ	frameSize(DI), CX
	MOVQ	CX, cpu_ist1(GS)
	SWAPGS
	TESTL	R10, R10
	JEQ	bases
	XORL	CX, CX
	MOVW	CX, GS
	MOVQ	page_gsBase(DI), DX
	WRGSBASEQ	DX
bases:
	MOVQ	page_fsBase(DI), CX
	WRFSBASEQ	CX
	MOVQ	DI, SP
	ANDQ	$flagsUser, frame_flags(SP)
	ORQ	$flagsAlways, frame_flags(SP)
	CMPQ	frame_vector(SP), $vectorSyscall
	JEQ	fast
	JMP	runtime·loamSlow(SB)
fast:
	JMP	runtime·loamFast(SB)
wild:
	MOVL	$vectorProtection, AX
	MOVQ	AX, frame_vector(DI)
	MOVQ	$0, (frame_vector+8)(DI)
	JMP	stay
moved:
	MOVL	page_seat(DI), DX
	TESTL	DX, DX
	JEQ	allowed
	CMPL	CX, DX
	JNE	unseated
allowed:
	MOVL	CX, page_placed(DI)
	MOVQ	DI, cpu_last(GS)
	MOVL	$vectorMoved, AX
	JMP	stay
unseated:	// bits 32 and up: the number of the CPU
	DECL	CX
	SHLQ	$32, CX
	LEAQ	vectorUnseated(CX), AX
	JMP	stay
elsewhere:
	MOVL	$vectorElsewhere, AX
	JMP	stay
stopped:
	MOVL	$vectorStopped, AX
stay:
	MOVL	$0, page_cpu(DI)
	STI
	RET

// loamSlow enters ring 3 by IRET, with all registers of the frame at SP. On a CPU that is vulnerable to Meltdown, a jump to
// loam_isolated_amd64.s replaces its first instruction (kernel/isolation.go).
TEXT runtime·loamSlow(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$userCode, frame_cs(SP)
	MOVQ	$userData, frame_ss(SP)
	CMPQ	page_control(SP), $0
	JEQ	plain
	MOVQ	(page_debug+0)(SP), AX
	MOVQ	AX, DR0
	MOVQ	(page_debug+8)(SP), AX
	BYTE $0x0f; BYTE $0x23; BYTE $0xc8	// MOVQ AX, DR1: the assembler cannot encode DR1
	MOVQ	(page_debug+16)(SP), AX
	MOVQ	AX, DR2
	MOVQ	(page_debug+24)(SP), AX
	MOVQ	AX, DR3
	MOVQ	page_control(SP), AX
	MOVQ	AX, DR7
plain:
	POP_REGISTERS
	ADDQ	$16, SP
	IRETQ

// loamFast enters ring 3 by SYSRET after a system call: the program expects CX and R11 to be overwritten. Its first
// instructions are replaced as those of loamSlow.
TEXT runtime·loamFast(SB),NOSPLIT|NOFRAME,$0
	POP_REGISTERS
	MOVQ	16(SP), CX
	MOVQ	32(SP), R11
	MOVQ	40(SP), SP
	BYTE $0x48; BYTE $0x0f; BYTE $0x07	// SYSRETQ

// saveOwn saves the x87 state and the base of GS of a context if this CPU holds them. It returns 0, or the number plus 1 of
// another CPU that holds the state. If XSAVE transfers all vector state (AVX-512), no CPU ever holds it.
//
//	func saveOwn(page *page) (live uint32)
TEXT loam∕kernel∕user·saveOwn<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, DI
	CLI
	CMPQ	DI, cpu_user(GS)
	JNE	other
	MOVL	$x87, AX
	XORL	DX, DX
	XSAVE64	page_vector(DI)
	MOVL	$kernelGS, CX
	RDMSR
	MOVL	AX, page_gsBase(DI)
	MOVL	DX, (page_gsBase+4)(DI)
	MOVL	$0, page_live(DI)
	MOVQ	$0, cpu_user(GS)
	XORL	AX, AX
	STI
	RET
other:
	MOVL	page_live(DI), AX
	STI
	RET

// forget drops this CPU's cached translations of a range of an address space (TLB), if the CPU uses that
// space; 0 pages means all translations. It returns the set of other CPUs that use the space. Interrupts
// are disabled, so the thread stays on this CPU from reading the set to the end. The caller has executed a full
// barrier after its changes of the page tables.
//
//	func forget(active *uint64, root uint64, va, pages uint64) (others uint64)
TEXT loam∕kernel∕user·forget<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	CLI
	MOVQ	0(AX), AX
	MOVL	cpu_number(GS), R8
	BTRQ	R8, AX
	CMPQ	BX, cpu_root(GS)
	JNE	done
	TESTQ	DI, DI
	JEQ	all
next:
	INVLPG	(CX)
	ADDQ	$4096, CX
	DECQ	DI
	JNE	next
	JMP	done
all:
	MOVQ	CR3, CX
	MOVQ	CX, CR3
done:
	STI
	RET

// copyDirect copies n bytes between kernel memory and user memory through the mapping of the process, if this
// CPU uses its address space. It returns false if the CPU does not, if a byte is not mapped for the access, or
// if an interrupt occurs. Some bytes may have been copied then.
//
// While cpu_copying is set, the entry code makes the thread continue at copyFault after a page fault or an
// interrupt, with the flag AC and cpu_copying cleared. So the CPU keeps the address space during the copy, and a
// CPU that removes a page (loam/kernel/user.Space.Apply) ends the copy by its interrupt.
//
// The caller repeats an interrupted copy. A word of 4 or 8 bytes must not be stored twice, because another thread may
// have changed it after the first store. So a copy of such a word is one store, with interrupts disabled.
//
//	func copyDirect(root uint64, to, from, n uintptr) (done bool)
TEXT loam∕kernel∕user·copyDirect<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	LEAQ	copyFault<>(SB), DX
	MOVQ	DX, cpu_copying(GS)	// before the comparison: the thread may change CPUs until then
	CMPQ	AX, cpu_root(GS)
	JNE	elsewhere
	CMPB	loam∕kernel·haveSMAP(SB), $0
	JEQ	blocks
	BYTE $0x0f; BYTE $0x01; BYTE $0xcb	// STAC
blocks:
	CMPQ	DI, $64
	JCS	pieces
	MOVOU	0(CX), X0
	MOVOU	16(CX), X1
	MOVOU	32(CX), X2
	MOVOU	48(CX), X3
	MOVOU	X0, 0(BX)
	MOVOU	X1, 16(BX)
	MOVOU	X2, 32(BX)
	MOVOU	X3, 48(BX)
	ADDQ	$64, CX
	ADDQ	$64, BX
	SUBQ	$64, DI
	JMP	blocks
pieces:
	CMPQ	DI, $16
	JCS	eight
	MOVOU	0(CX), X0
	MOVOU	X0, 0(BX)
	ADDQ	$16, CX
	ADDQ	$16, BX
	SUBQ	$16, DI
	JMP	pieces
eight:	// less than 16 bytes: two accesses, which may overlap
	CMPQ	DI, $8
	JCS	four
	JEQ	long
	MOVQ	0(CX), AX
	MOVQ	-8(CX)(DI*1), DX
	MOVQ	AX, 0(BX)
	MOVQ	DX, -8(BX)(DI*1)
	JMP	copied
four:
	CMPQ	DI, $4
	JCS	bytes
	JEQ	word
	MOVL	0(CX), AX
	MOVL	-4(CX)(DI*1), DX
	MOVL	AX, 0(BX)
	MOVL	DX, -4(BX)(DI*1)
	JMP	copied
bytes:
	TESTQ	DI, DI
	JEQ	copied
	MOVB	0(CX), AX
	MOVB	AX, 0(BX)
	INCQ	CX
	INCQ	BX
	DECQ	DI
	JMP	bytes
copied:
	CMPB	loam∕kernel·haveSMAP(SB), $0
	JEQ	protected
	BYTE $0x0f; BYTE $0x01; BYTE $0xca	// CLAC
protected:
	MOVQ	$0, cpu_copying(GS)
	MOVL	$1, AX
	RET
elsewhere:
	MOVQ	$0, cpu_copying(GS)
	XORL	AX, AX
	RET
long:
	CLI
	MOVQ	0(CX), AX
	MOVQ	AX, 0(BX)
	JMP	stored
word:
	CLI
	MOVL	0(CX), AX
	MOVL	AX, 0(BX)
stored:
	CMPB	loam∕kernel·haveSMAP(SB), $0
	JEQ	enable
	BYTE $0x0f; BYTE $0x01; BYTE $0xca	// CLAC
enable:
	MOVQ	$0, cpu_copying(GS)
	STI
	MOVL	$1, AX
	RET

// copyFault is the end of copyDirect after a page fault or an interrupt. A page fault may occur while interrupts are disabled.
TEXT copyFault<>(SB),NOSPLIT|NOFRAME,$0
	STI
	XORL	AX, AX
	RET

// loamUserCall is the target of the SYSCALL instruction in ring 3. The return address is in CX, and the
// flags are in R11.
TEXT runtime·loamUserCall(SB),NOSPLIT|NOFRAME,$0
	SWAPGS
	MOVQ	SP, cpu_scratch(GS)
	MOVQ	cpu_ist1(GS), SP
	PUSHQ	$userData
	PUSHQ	cpu_scratch(GS)
	PUSHQ	R11
	PUSHQ	$userCode
	PUSHQ	CX
	PUSHQ	$0
	PUSHQ	$vectorSyscall
	PUSH_REGISTERS
	MOVQ	SP, DI
	MOVQ	cpu_stack(GS), SP
	JMP	runtime·loamUserBack(SB)	// SYSCALL has cleared the flags of ring 3 (MSRFlagMask)

// loamUserTrap handles exceptions and interrupts that occur in ring 3. loamAnyTrap (loam_entry_amd64.s) has stored
// the whole frame at SP, and has executed SWAPGS.
TEXT runtime·loamUserTrap(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, DI
	MOVQ	cpu_stack(GS), SP
	// Clear the flags of ring 3 that the processor does not clear on entry, such as AC, which would
	// suspend SMAP.
	PUSHQ	$2
	POPFQ
	JMP	runtime·loamUserBack(SB)

// loamUserBack returns from enter to the goroutine after ring 3 was left. DI is the address of the context, and SP
// is the CPU's stack.
TEXT runtime·loamUserBack(SB),NOSPLIT|NOFRAME,$0
	MOVL	$0, page_cpu(DI)
	CMPB	loam∕kernel·userVectors(SB), $vectorsSSE
	JCS	all
	STMXCSR	page_mxcsr(DI)
	JEQ	narrow
	VMOVDQU	Y0, (page_wide+0)(DI)
	VMOVDQU	Y1, (page_wide+32)(DI)
	VMOVDQU	Y2, (page_wide+64)(DI)
	VMOVDQU	Y3, (page_wide+96)(DI)
	VMOVDQU	Y4, (page_wide+128)(DI)
	VMOVDQU	Y5, (page_wide+160)(DI)
	VMOVDQU	Y6, (page_wide+192)(DI)
	VMOVDQU	Y7, (page_wide+224)(DI)
	VMOVDQU	Y8, (page_wide+256)(DI)
	VMOVDQU	Y9, (page_wide+288)(DI)
	VMOVDQU	Y10, (page_wide+320)(DI)
	VMOVDQU	Y11, (page_wide+352)(DI)
	VMOVDQU	Y12, (page_wide+384)(DI)
	VMOVDQU	Y13, (page_wide+416)(DI)
	VMOVDQU	Y14, (page_wide+448)(DI)
	VMOVDQU	Y15, (page_wide+480)(DI)
	VZEROUPPER	// avoids a penalty in the code that follows, which uses SSE
	JMP	saved
narrow:
	MOVOU	X0, (page_wide+0)(DI)
	MOVOU	X1, (page_wide+32)(DI)
	MOVOU	X2, (page_wide+64)(DI)
	MOVOU	X3, (page_wide+96)(DI)
	MOVOU	X4, (page_wide+128)(DI)
	MOVOU	X5, (page_wide+160)(DI)
	MOVOU	X6, (page_wide+192)(DI)
	MOVOU	X7, (page_wide+224)(DI)
	MOVOU	X8, (page_wide+256)(DI)
	MOVOU	X9, (page_wide+288)(DI)
	MOVOU	X10, (page_wide+320)(DI)
	MOVOU	X11, (page_wide+352)(DI)
	MOVOU	X12, (page_wide+384)(DI)
	MOVOU	X13, (page_wide+416)(DI)
	MOVOU	X14, (page_wide+448)(DI)
	MOVOU	X15, (page_wide+480)(DI)
	JMP	saved
all:
	MOVL	$-1, AX
	MOVL	$-1, DX
	XSAVE64	page_vector(DI)
	MOVL	$kernelGS, CX
	RDMSR
	MOVL	AX, page_gsBase(DI)
	MOVL	DX, (page_gsBase+4)(DI)
saved:
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	ADDQ	AX, page_used(DI)
	LDMXCSR	loamMXCSR<>(SB)
	XORPS	X15, X15
	RDFSBASEQ	AX
	MOVQ	AX, page_fsBase(DI)
	MOVQ	cpu_fsBase(GS), AX
	WRFSBASEQ	AX
	MOVQ	cpu_frameEnd(GS), AX
	MOVQ	AX, cpu_ist1(GS)
	MOVQ	cpu_callerBP(GS), BP
	MOVQ	cpu_callerG(GS), R14

	MOVQ	frame_vector(DI), AX
	CMPQ	AX, $vectorSyscall
	JEQ	return
	CMPQ	AX, $vectorPage
	JEQ	page
	CMPQ	AX, $exceptions
	JCC	interrupt
	CMPQ	AX, $vectorDebug
	JEQ	debug
return:
	MOVQ	cpu_callerSP(GS), SP
	STI
	RET
page:
	MOVQ	CR2, CX
	MOVQ	CX, page_fault(DI)
	JMP	return
debug:
	MOVQ	DR6, CX
	MOVQ	CX, page_status(DI)
	XORL	CX, CX
	MOVQ	CX, DR6
	MOVQ	CX, DR7
	JMP	return
interrupt:
	MOVQ	cpu_callerSP(GS), CX
	LEAQ	returned<>(SB), DX
	MOVQ	cpu_frameEnd(GS), SP
	PUSHQ	$selectorData
	PUSHQ	CX
	PUSHQ	$flagsAlways
	PUSHQ	$selectorCode
	PUSHQ	DX
	PUSHQ	$codeUser
	PUSHQ	AX
	PUSH_REGISTERS
	JMP	runtime·loamServe(SB)

// returned is the address at which the goroutine continues after an interrupt has been served. It returns
// from enter: the return address of enter is at SP.
TEXT returned<>(SB),NOSPLIT|NOFRAME,$0
	RET

// loamMXCSR is the floating-point mode of Go code: all exceptions masked, rounding to nearest.
DATA	loamMXCSR<>+0(SB)/4, $0x1f80
GLOBL	loamMXCSR<>(SB), RODATA|NOPTR, $4
