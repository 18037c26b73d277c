// Entry to the kernel, and return from it.
//
// A thread of the Go runtime enters in one of three ways: by a call of loamGate, which replaces each
// SYSCALL instruction of the standard library; by a SYSCALL instruction in other assembly (loamTrap);
// or by an exception or interrupt (loamVectors). Each way saves the registers in an amd64.Frame at the
// end of the thread's own page. Then it calls Enter, with interrupts disabled, on the CPU's kernel
// stack and with a g of the kernel. Enter is ordinary Go code that does not allocate. It returns the
// frame to resume, which may belong to another thread.
//
// In ring 0 GS points to the CPU's structure, loam/kernel.cpu. Interrupts use the stack in entry 1 of
// the CPU's interrupt stack table. That entry points to the end of the thread's frame while a thread
// runs, and to another area while the kernel runs, so a fault in the kernel overwrites no frame.
// Entries from ring 3 continue in loam_user_amd64.s. CPUs that are vulnerable to Meltdown enter in
// loam_isolated_amd64.s. Debug exceptions have a stack of their own: see debug.

#include "go_asm.h"
#include "textflag.h"

// Offsets of the fields of loam/kernel.cpu, the structure of a CPU. A test compares them with the Go type.
#define cpu_frameEnd	8
#define cpu_scratch	16
#define cpu_stack	24
#define cpu_vector	32
#define cpu_crashEnd	40
#define cpu_ist1	(48+0x24)
#define cpu_claimed	152
#define cpu_dozes	156
#define cpu_user	208
#define cpu_copying	232

// interruptRoom is the space in bytes that loam/kernel.Interrupted and its callees need on the stack. A fault in them uses
// the stack below this space. It is a multiple of 16, because the processor aligns the stack of a fault to 16 bytes.
#define interruptRoom	2048

// PUSH_REGISTERS pushes the general registers, so that they form the start of an amd64.Frame: the last field first.
#define PUSH_REGISTERS \
	PUSHQ	AX; PUSHQ	CX; PUSHQ	DX; PUSHQ	BX; \
	PUSHQ	BP; PUSHQ	SI; PUSHQ	DI; \
	PUSHQ	R8; PUSHQ	R9; PUSHQ	R10; PUSHQ	R11; \
	PUSHQ	R12; PUSHQ	R13; PUSHQ	R14; PUSHQ	R15

// Offsets in loam/kernel.machineCore: the address of the root page table, and the fields of its clock, a
// loam/kernel/timekeeper.Clock. A test compares them with the Go types.
#define core_root	0
#define clock_sequence	40
#define clock_start	48
#define clock_base	56
#define clock_scale	64
#define clock_wall	72

// Size of loam/arch/amd64.Frame, and offsets of its fields.
#define frameSize	176
#define frame_vector	120
#define frame_ip	136
#define frame_cs	144
#define frame_flags	152

// Offsets of the fields of loam/kernel/user.page, the context of a thread in ring 3: see loam_user_amd64.s.
#define page_gsBase	192
#define page_live	224
#define page_vector	256

// Selectors of the kernel's code and data segments, the flag AC, the first vector that is no exception, and the values of
// amd64.Frame.Vector for two exceptions and the two kinds of system calls (loam/arch/amd64).
#define selectorCode	8
#define selectorData	16
#define flagAccess	0x40000
#define exceptions	32
#define vectorDebug	1
#define vectorPage	14
#define vectorCall	0x100
#define vectorSyscall	0x102

// Number of pieces of entry code in loamVectors, and the number of the piece for the debug exception.
#define stubCount	128
#define stubDebug	1

// Offsets from the top of debug's stack: two registers, then the end of an amd64.Frame.
#define debug_cx	0
#define debug_ax	8
#define debug_vector	16
#define debug_code	24
#define debug_ip	32
#define debug_cs	40
#define debug_flags	48
#define debug_sp	56
#define debug_ss	64

// flagResume is the flag RF. While it is set, no instruction breakpoint triggers.
#define flagResume	0x10000

// spillRoom is space above the return address of a Go function, which may store its register arguments there (Go's ABI,
// "Function call stack"). Without it, the function overwrites the frame whose address it gets.
#define spillRoom	64

#define bootStackSize	32768
#define gSize	1024

// SSE enables SSE, which compiled code uses (SDM volume 3, 14.1), and the caches, which are disabled
// after a reset.
#define SSE \
	MOVQ	CR0, AX; \
	ANDQ	$~(1<<2 | 1<<3 | 1<<29 | 1<<30), AX; \ // CR0: clear EM (emulation), TS (task switched), NW and CD (caches disabled)
	ORQ	$(1<<1 | 1<<5), AX; \ // CR0: set MP (monitor coprocessor) and NE (native x87 errors)
	MOVQ	AX, CR0; \
	MOVQ	CR4, AX; \
	ORQ	$(1<<9 | 1<<10), AX; \ // CR4: set OSFXSR (SSE) and OSXMMEXCPT (SSE exceptions)
	MOVQ	AX, CR4; \
	FINIT; \
	XORPS	X15, X15; \
	XORL	BP, BP

// loamStart is the entry point of the program in 64-bit mode. The entry code of unikernel/image jumps
// here. RBX is the physical address of the boot information, and RSI the monitor's value of EAX.
TEXT runtime·loamStart(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	CLI
	CLD
	LEAQ	loamBootStack<>(SB), AX
	LEAQ	bootStackSize(AX), SP
	ANDQ	$~15, SP
	LEAQ	loamKernelG<>(SB), R14

	SSE

	// Store the addresses of functions in this file in loam/kernel.entries.
	LEAQ	runtime·loamTrap(SB), AX
	MOVQ	AX, loam∕kernel·entries+0(SB)
	LEAQ	loamVectors<>(SB), AX
	MOVQ	AX, loam∕kernel·entries+8(SB)
	LEAQ	loamIdle<>(SB), AX
	MOVQ	AX, loam∕kernel·entries+16(SB)
	LEAQ	_rt0_amd64_linux(SB), AX
	MOVQ	AX, loam∕kernel·entries+24(SB)
	LEAQ	loamSigreturn<>(SB), AX
	MOVQ	AX, loam∕kernel·entries+32(SB)
	LEAQ	loamStartCPU<>(SB), AX
	MOVQ	AX, loam∕kernel·entries+40(SB)
	LEAQ	loamCrashG<>(SB), AX
	MOVQ	AX, loam∕kernel·entries+48(SB)
	LEAQ	runtime·loamCrashM(SB), CX
	MOVQ	CX, g_m(AX)	// this g has an M of its own, because other CPUs may run the program's Ms during a crash
	LEAQ	runtime·loamIsolated(SB), AX
	MOVQ	AX, loam∕kernel·entries+56(SB)
	LEAQ	runtime·loamFast(SB), AX
	MOVQ	AX, loam∕kernel·entries+64(SB)
	LEAQ	runtime·loamSlow(SB), AX
	MOVQ	AX, loam∕kernel·entries+72(SB)
	LEAQ	loamClockGettime<>(SB), AX
	MOVQ	AX, runtime·vdsoClockgettimeSym(SB)

	MOVL	BX, AX
	MOVL	SI, BX
	CALL	loam∕kernel·Start<ABIInternal>(SB)
	MOVQ	cpu_stack(GS), SP
	CALL	loam∕kernel·Begin<ABIInternal>(SB)
	JMP	leave<>(SB)

// loamStartCPU is the entry point of each CPU except the first, in 64-bit mode. RBX is the address of the
// CPU's loam/kernel.cpu. At first the CPU uses the page tables of the entry code (unikernel/image), which
// do not map its stack.
TEXT loamStartCPU<>(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	MOVL	$1, AX
	XCHGL	AX, cpu_claimed(BX)
	TESTL	AX, AX
	JEQ	claimed
	CLI
	HLT	// the first CPU no longer waits for this one: see kernel/smp.go
	JMP	-2(PC)
claimed:
	SSE
	MOVQ	loam∕kernel·machineCore+core_root(SB), AX	// the physical address of the kernel's page tables
	MOVQ	AX, CR3
	MOVQ	cpu_stack(BX), SP
	LEAQ	loamKernelG<>(SB), R14
	MOVQ	BX, AX
	CALL	loam∕kernel·StartCPU<ABIInternal>(SB)
	JMP	leave<>(SB)

// The g structures of the kernel, and the boot stack. Compiled code uses only the stack bounds of a g. In
// these structures the bounds are 0, so no function tries to grow the stack: see kernel/stack.go.
GLOBL loamKernelG<>(SB), NOPTR, $gSize
GLOBL loamCrashG<>(SB), NOPTR, $gSize
GLOBL loamBootStack<>(SB), NOPTR, $bootStackSize

// loamGate replaces the SYSCALL instructions of the standard library, with the same interface: number
// in AX, arguments in DI, SI, DX, R10, R8, R9, result in AX; CX and R11 are overwritten. Vector
// registers are overwritten too; no caller keeps values in them.
TEXT runtime·loamGate(SB),NOSPLIT|NOFRAME,$0
	PUSHFQ
	CLI
	POPQ	R11
	POPQ	CX
	JMP	call<>(SB)

// loamExit replaces loamGate for a thread that ends. It does not access the stack of the thread, which
// another thread may already use.
TEXT runtime·loamExit(SB),NOSPLIT|NOFRAME,$0
	CLI
	XORL	CX, CX
	MOVL	$2, R11
	JMP	call<>(SB)

// loamTrap is the target of the SYSCALL instruction, with interrupts disabled. The return address is in
// CX, and the flags are in R11 (SDM volume 2, SYSCALL). Code with such an instruction expects its vector
// registers to be preserved. The return is by IRET, as for all frames, because SYSRET returns to ring 3.
TEXT runtime·loamTrap(SB),NOSPLIT|NOFRAME,$0
	TESTQ	CX, CX
	JPL	user	// the return address is in the lower half of the address space: the call comes from ring 3
	MOVQ	SP, cpu_scratch(GS)
	MOVQ	cpu_frameEnd(GS), SP
	PUSHQ	$selectorData
	PUSHQ	cpu_scratch(GS)
	PUSHQ	R11
	PUSHQ	$selectorCode
	PUSHQ	CX
	PUSHQ	$0
	PUSHQ	$vectorSyscall
	JMP	runtime·loamAnyTrap(SB)
user:
	JMP	runtime·loamUserCall(SB)

// call is the common end of loamGate and loamExit. It saves a frame and calls the kernel. CX is the return
// address and R11 the flags, as after a SYSCALL instruction.
TEXT call<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, cpu_scratch(GS)
	MOVQ	cpu_frameEnd(GS), SP
	PUSHQ	$selectorData
	PUSHQ	cpu_scratch(GS)
	PUSHQ	R11
	PUSHQ	$selectorCode
	PUSHQ	CX
	PUSHQ	$0
	PUSHQ	$vectorCall
	PUSH_REGISTERS
	JMP	runtime·loamServe(SB)

// loamAnyTrap is the common end of loamVectors and loamTrap. The processor's part of the frame, the error code
// and the vector are on the stack already.
TEXT runtime·loamAnyTrap(SB),NOSPLIT|NOFRAME,$0
	PUSH_REGISTERS
	CLD
	TESTB	$3, frame_cs(SP)
	JEQ	kernel
	SWAPGS
	JMP	runtime·loamUserTrap(SB)
kernel:
	CMPQ	cpu_copying(GS), $0
	JEQ	2(PC)
	JMP	copying<>(SB)
	JMP	thread<>(SB)

// thread handles a trap in ring 0.
TEXT thread<>(SB),NOSPLIT|NOFRAME,$0
	// If the frame is not at the end of the thread's page, then the kernel was interrupted, and not a thread.
	MOVQ	cpu_frameEnd(GS), AX
	SUBQ	$frameSize, AX
	CMPQ	AX, SP
	JEQ	2(PC)
	JMP	inside<>(SB)

	// Save all vector state that is enabled in XCR0. A processor without XSAVE saves it with FXSAVE.
	MOVQ	cpu_vector(GS), DI
	CMPB	loam∕kernel·haveXSave(SB), $0
	JEQ	old
	MOVL	$-1, AX
	MOVL	$-1, DX
	XSAVE64	(DI)
	JMP	runtime·loamServe(SB)
old:
	FXSAVE64	(DI)
	JMP	runtime·loamServe(SB)

// copying handles a trap during copyDirect (loam_user_amd64.s). A page fault or an interrupt ends the copy: the
// thread continues at the address in cpu_copying, where it may be on another CPU. A breakpoint on the data of
// the process, which the processor may still have (loam/kernel/user.Context.SetDebug), has no effect.
TEXT copying<>(SB),NOSPLIT|NOFRAME,$0
	CMPQ	frame_vector(SP), $vectorDebug
	JEQ	debug
	MOVQ	cpu_copying(GS), AX
	MOVQ	$0, cpu_copying(GS)
	CMPB	loam∕kernel·haveSMAP(SB), $0
	JEQ	protected
	BYTE $0x0f; BYTE $0x01; BYTE $0xca	// CLAC
	ANDL	$~flagAccess, frame_flags(SP)
protected:
	CMPQ	frame_vector(SP), $vectorPage
	JEQ	page
	CMPQ	frame_vector(SP), $exceptions
	JCS	2(PC)
	MOVQ	AX, frame_ip(SP)
	JMP	thread<>(SB)
page:
	MOVQ	AX, frame_ip(SP)
	JMP	resume
debug:
	XORL	AX, AX
	MOVQ	AX, DR6
resume:
	MOVQ	SP, AX
	XORL	BX, BX
	JMP	leave<>(SB)

// loamServe calls loam/kernel.Enter with the frame at SP.
TEXT runtime·loamServe(SB),NOSPLIT|NOFRAME,$0
	MOVQ	cpu_crashEnd(GS), AX
	MOVQ	AX, cpu_ist1(GS)
	MOVQ	SP, BX
	MOVQ	cpu_stack(GS), SP
	LEAQ	loamKernelG<>(SB), R14
	XORPS	X15, X15
	XORL	BP, BP
	MOVQ	0(GS), AX
	CALL	loam∕kernel·Enter<ABIInternal>(SB)
	JMP	leave<>(SB)

// leave resumes the frame at AX. BX is the address of its vector registers, or 0 if none are restored.
TEXT leave<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, SP
	XORPS	X15, X15
	TESTQ	BX, BX
	JEQ	general
	CMPB	loam∕kernel·haveXSave(SB), $0
	JEQ	old
	MOVQ	cpu_user(GS), CX
	TESTQ	CX, CX
	JEQ	free
	MOVL	$1, AX	// the processor holds the x87 state of a context, which is saved first
	XORL	DX, DX
	XSAVE64	page_vector(CX)
	MOVQ	CX, R9
	MOVL	$0xc0000102, CX	// the base of GS in ring 3
	RDMSR
	MOVL	AX, page_gsBase(R9)
	MOVL	DX, (page_gsBase+4)(R9)
	MOVL	$0, page_live(R9)
	MOVQ	$0, cpu_user(GS)
free:
	MOVL	$-1, AX
	MOVL	$-1, DX
	XRSTOR64	(BX)
	JMP	general
old:
	FXRSTOR64	(BX)
general:
	POPQ	R15
	POPQ	R14
	POPQ	R13
	POPQ	R12
	POPQ	R11
	POPQ	R10
	POPQ	R9
	POPQ	R8
	POPQ	DI
	POPQ	SI
	POPQ	BP
	POPQ	BX
	POPQ	DX
	POPQ	CX
	POPQ	AX
	ADDQ	$16, SP
	IRETQ

// inside handles a trap that occurred while the kernel ran. An interrupt is expected if the CPU dozes, that is, has halted
// while it waits for the kernel's lock. Vector registers need not be preserved then. Everything else ends the machine.
TEXT inside<>(SB),NOSPLIT|NOFRAME,$0
	CMPL	cpu_dozes(GS), $0
	JEQ	fails
	CMPQ	frame_vector(SP), $exceptions
	JCS	fails
	LEAQ	loamKernelG<>(SB), R14
	XORPS	X15, X15
	XORL	BP, BP
	LEAQ	-interruptRoom(SP), AX	// a fault in Interrupted uses the memory below its stack
	MOVQ	AX, cpu_ist1(GS)
	MOVQ	SP, BX
	MOVQ	0(GS), AX
	SUBQ	$spillRoom, SP
	CALL	loam∕kernel·Interrupted<ABIInternal>(SB)
	ADDQ	$spillRoom, SP
	MOVQ	cpu_crashEnd(GS), AX
	MOVQ	AX, cpu_ist1(GS)
	MOVQ	SP, AX
	XORL	BX, BX
	JMP	leave<>(SB)
fails:
	JMP	runtime·loamFatal(SB)

// loamFatal ends the machine after an unexpected trap in the kernel. It uses the current stack.
TEXT runtime·loamFatal(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$0, cpu_copying(GS)
	MOVQ	SP, BX
	LEAQ	loamCrashG<>(SB), R14
	XORPS	X15, X15
	XORL	BP, BP
	MOVQ	0(GS), AX
	SUBQ	$spillRoom, SP
	CALL	loam∕kernel·Fatal<ABIInternal>(SB)
	HLT
	JMP	-1(PC)

// last handles exceptions that always end the machine, such as a double fault. They may occur before or after
// SWAPGS, so the address of loam/kernel.cpu is read from their own stack: see crashRoom in kernel/stack.go.
TEXT last<>(SB),NOSPLIT|NOFRAME,$0
	PUSH_REGISTERS
	CLD
	MOVQ	frameSize(SP), AX
	MOVQ	AX, DX
	SHRQ	$32, DX
	MOVL	$0xc0000101, CX	// IA32_GS_BASE
	WRMSR
	JMP	runtime·loamFatal(SB)

// debug handles debug exceptions, on a stack of their own. It moves the processor's part of the frame to the stack
// of other exceptions (entry 1 of the interrupt stack table) and continues as for them.
//
// If an instruction that loads SS hits a data breakpoint of ring 3, the exception occurs only after the next
// instruction (SDM volume 3, 6.8.3). If that is SYSCALL or INT3, it occurs in ring 0 at the first instruction of the
// kernel, while GS still belongs to ring 3 (CVE-2018-8897). Such an exception is ignored, without any access
// through GS. The frame of INT3 is on another stack, so it is intact. RF is set because an instruction breakpoint,
// which only a test sets there, would trigger again.
TEXT debug<>(SB),NOSPLIT|NOFRAME,$0
	PUSHQ	AX
	PUSHQ	CX
	TESTB	$3, debug_cs(SP)
	JNE	user
	MOVQ	debug_ip(SP), AX
	LEAQ	runtime·loamTrap(SB), CX
	CMPQ	AX, CX
	JEQ	delayed
	LEAQ	loamVectors<>(SB), CX
	SUBQ	CX, AX
	SHRQ	$4, AX
	CMPQ	AX, $stubDebug
	JEQ	lost
	CMPQ	AX, $stubCount
	JCS	delayed
	MOVQ	cpu_ist1(GS), AX
	JMP	move
user:
	SWAPGS
	MOVQ	cpu_ist1(GS), AX
	SWAPGS
move:
	XCHGQ	AX, SP
	PUSHQ	debug_ss(AX)
	PUSHQ	debug_sp(AX)
	PUSHQ	debug_flags(AX)
	PUSHQ	debug_cs(AX)
	PUSHQ	debug_ip(AX)
	PUSHQ	debug_code(AX)
	PUSHQ	debug_vector(AX)
	MOVQ	debug_cx(AX), CX
	MOVQ	debug_ax(AX), AX
	JMP	runtime·loamAnyTrap(SB)
delayed:
	XORL	AX, AX
	MOVQ	AX, DR6
	ORL	$flagResume, debug_flags(SP)
	POPQ	CX
	POPQ	AX
	ADDQ	$16, SP
	IRETQ
lost:
	// The frame has overwritten the frame of an earlier debug exception. No processor is known to do this: end the machine.
	POPQ	CX
	POPQ	AX
	JMP	last<>(SB)

// loamIdle is the loop of a CPU without a thread to run. STI enables interrupts only after the next
// instruction, so no interrupt can occur between STI and HLT and be missed.
TEXT loamIdle<>(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	STI
	HLT
	JMP	-2(PC)

// loamSigreturn is the return address of a signal handler. The runtime's own function cannot be used:
// the CALL that replaced its SYSCALL gives it a stack frame.
TEXT loamSigreturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$15, AX
	CALL	runtime·loamGate(SB)
	INT	$3

// loamClockGettime replaces clock_gettime of Linux's vDSO, which the runtime calls to read clocks. DI is
// the clock, and SI points to the struct timespec to fill. It follows C's calling convention and runs on
// the stack of g0.
TEXT loamClockGettime<>(SB),NOSPLIT|NOFRAME,$0
again:
	MOVL	loam∕kernel·machineCore+clock_sequence(SB), R8
	LFENCE
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	SUBQ	loam∕kernel·machineCore+clock_start(SB), AX
	JPL	later
	XORL	AX, AX	// the counter of the CPU that set the clock may be slightly ahead: use 0
later:
	MULQ	loam∕kernel·machineCore+clock_scale(SB)	// nanoseconds per tick, a fixed-point number with 32 fraction bits
	SHRQ	$32, DX, AX
	ADDQ	loam∕kernel·machineCore+clock_base(SB), AX
	MOVQ	loam∕kernel·machineCore+clock_wall(SB), R9
	BTL	$0, R8
	JCS	wait
	CMPL	R8, loam∕kernel·machineCore+clock_sequence(SB)
	JNE	again
	TESTQ	DI, DI
	JNE	monotonic
	ADDQ	R9, AX
monotonic:
	XORL	DX, DX
	MOVQ	$1000000000, CX
	DIVQ	CX
	MOVQ	AX, 0(SI)
	MOVQ	DX, 8(SI)
	XORL	AX, AX
	RET
wait:
	PAUSE	// the sequence is odd: another CPU is changing the clock
	JMP	again

// loamVectors contains the entry code of all interrupt vectors, 16 bytes for each. The code pushes an
// error code of 0 unless the processor has pushed one (SDM volume 3, 6.13), then the vector number.
// PUSH is written as bytes, because the linker counts the stack use of all PUSHQ instructions of a
// function as if they were executed one after another.
#define PUSH(n) BYTE $0x6a; BYTE $(n)
#define VECTOR(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	runtime·loamAnyTrap(SB)
#define VECTOR_WITH_CODE(n) \
	PCALIGN	$16; \
	PUSH(n); \
	JMP	runtime·loamAnyTrap(SB)
#define VECTOR_LAST(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	last<>(SB)
#define VECTOR_LAST_WITH_CODE(n) \
	PCALIGN	$16; \
	PUSH(n); \
	JMP	last<>(SB)
#define VECTOR_DEBUG(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	debug<>(SB)
#define VECTORS_8(n) \
	VECTOR(n+0); VECTOR(n+1); VECTOR(n+2); VECTOR(n+3); \
	VECTOR(n+4); VECTOR(n+5); VECTOR(n+6); VECTOR(n+7)

TEXT loamVectors<>(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	VECTOR(0)
	VECTOR_DEBUG(1)
	VECTOR_LAST(2)
	VECTOR(3)
	VECTOR(4)
	VECTOR(5)
	VECTOR(6)
	VECTOR(7)
	VECTOR_LAST_WITH_CODE(8)
	VECTOR(9)
	VECTOR_WITH_CODE(10)
	VECTOR_WITH_CODE(11)
	VECTOR_WITH_CODE(12)
	VECTOR_WITH_CODE(13)
	VECTOR_WITH_CODE(14)
	VECTOR(15)
	VECTOR(16)
	VECTOR_WITH_CODE(17)
	VECTOR_LAST(18)
	VECTOR(19)
	VECTOR(20)
	VECTOR_WITH_CODE(21)
	VECTOR(22)
	VECTOR(23)
	VECTORS_8(24)
	VECTORS_8(32)
	VECTORS_8(40)
	VECTORS_8(48)
	VECTORS_8(56)
	VECTORS_8(64)
	VECTORS_8(72)
	VECTORS_8(80)
	VECTORS_8(88)
	VECTORS_8(96)
	VECTORS_8(104)
	VECTORS_8(112)
	VECTORS_8(120)
