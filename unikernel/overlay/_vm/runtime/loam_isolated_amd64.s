// Entry from ring 3, and return to it, on a CPU that is vulnerable to Meltdown: see kernel/isolation.go.
//
// In ring 3, CR3 has the root table of ring 3, which maps only this function, the copy of the interrupt descriptor
// table, and the CPU's loam/kernel.entryArea. Until the code here has loaded CR3 with the kernel's root table, and after it has
// loaded the other one, it accesses nothing else. GS points to the entryArea then, and to loam/kernel.cpu before and after.
//
// Every exception and interrupt is stored on a stack in the entryArea, also if it occurs in ring 0. The code moves the
// frame to the address in cpu_ist1, where the processor stores it on other CPUs, and continues with the
// code for those. The processor uses the task state segment in the entryArea, so cpu_ist1 is only a variable.
//
// Ring 3 of any CPU may be able to read the entryArea. So the code stores no register of ring 0 there, except in a debug
// exception, before it knows the ring. It clears all registers that it has stored, except SP of ring 3.

#include "go_asm.h"
#include "textflag.h"

// Offsets of the fields of loam/kernel.cpu and loam/kernel.entryArea. A test compares them with the Go types.
#define cpu_scratch	16
#define cpu_stack	24
#define cpu_crashEnd	40
#define cpu_ist1	(48+0x24)
#define cpu_area	240
#define area_cpu	0
#define area_root	8
#define area_scratch	16
#define area_exit	24

// Size of loam/arch/amd64.Frame, and offsets of its fields; offsets of the fields of loam/kernel/user.page.
#define frameSize	176
#define frame_vector	120
#define frame_ip	136
#define frame_cs	144
#define frame_flags	152
#define frame_sp	160
#define frame_ss	168
#define page_root	200
#define page_second	248
#define page_debug	3584
#define page_control	3616

// Offsets in a frame that begins with the vector.
#define vector_vector	0
#define vector_code	8
#define vector_ip	16
#define vector_cs	24
#define vector_flags	32
#define vector_sp	40
#define vector_ss	48

// Offsets in a frame of the debug exception after two registers.
#define debug_ip	32
#define debug_cs	40
#define debug_flags	48

// Constants of loam/arch/amd64, and numbers of the pieces of code below.
#define userData	0x2b
#define userCode	0x33
#define vectorSyscall	0x102
#define flagResume	0x10000
#define stubDebug	1
#define stubCall	128

#define PUSH_REGISTERS PUSHQ	AX; PUSH_OTHERS

#define PUSH_OTHERS \
	PUSHQ	CX; PUSHQ	DX; PUSHQ	BX; \
	PUSHQ	BP; PUSHQ	SI; PUSHQ	DI; \
	PUSHQ	R8; PUSHQ	R9; PUSHQ	R10; PUSHQ	R11; \
	PUSHQ	R12; PUSHQ	R13; PUSHQ	R14; PUSHQ	R15

#define POP_REGISTERS \
	POPQ	R15; POPQ	R14; POPQ	R13; POPQ	R12; \
	POPQ	R11; POPQ	R10; POPQ	R9; POPQ	R8; \
	POPQ	DI; POPQ	SI; POPQ	BP; \
	POPQ	BX; POPQ	DX; POPQ	CX; POPQ	AX

// MOVE copies a frame that begins with the vector, at AX plus an offset, to the stack.
#define MOVE(at) \
	PUSHQ	(at+vector_ss)(AX); \
	PUSHQ	(at+vector_sp)(AX); \
	PUSHQ	(at+vector_flags)(AX); \
	PUSHQ	(at+vector_cs)(AX); \
	PUSHQ	(at+vector_ip)(AX); \
	PUSHQ	(at+vector_code)(AX); \
	PUSHQ	(at+vector_vector)(AX)

// The pieces of code for the vectors, as in loamVectors (loam_entry_amd64.s).
#define PUSH(n) BYTE $0x6a; BYTE $(n)
#define VECTOR(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	trap
#define VECTOR_WITH_CODE(n) \
	PCALIGN	$16; \
	PUSH(n); \
	JMP	trap
#define VECTOR_LAST(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	last
#define VECTOR_LAST_WITH_CODE(n) \
	PCALIGN	$16; \
	PUSH(n); \
	JMP	last
#define VECTOR_DEBUG(n) \
	PCALIGN	$16; \
	PUSH(0); \
	PUSH(n); \
	JMP	debug
#define VECTORS_8(n) \
	VECTOR(n+0); VECTOR(n+1); VECTOR(n+2); VECTOR(n+3); \
	VECTOR(n+4); VECTOR(n+5); VECTOR(n+6); VECTOR(n+7)

// loamIsolated is all code that executes with the root table of ring 3. It is one function, so that it is in one
// or two pages.
TEXT runtime·loamIsolated(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
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
	PCALIGN	$16
	JMP	call	// target of the SYSCALL instruction
	PCALIGN	$16
	JMP	fast	// loamFast jumps here
	PCALIGN	$16
	JMP	slow	// loamSlow jumps here

// fast enters ring 3 by SYSRET: see loamFast (loam_user_amd64.s). SP is the address of the context; SWAPGS was executed.
fast:
	SWAPGS
	MOVQ	cpu_area(GS), CX
	WRGSBASEQ	CX
	MOVQ	page_root(SP), CX
	MOVQ	CX, area_root(GS)
	MOVQ	frame_sp(SP), CX
	MOVQ	CX, area_scratch(GS)
	POP_REGISTERS
	MOVQ	16(SP), CX
	MOVQ	32(SP), R11
	MOVQ	(page_second-frame_vector)(SP), SP
	MOVQ	SP, CR3
	MOVQ	area_scratch(GS), SP
	SWAPGS
	BYTE $0x48; BYTE $0x0f; BYTE $0x07	// SYSRETQ

// slow enters ring 3 by IRET: see loamSlow. The frame that IRET pops is in the entryArea.
slow:
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
	SWAPGS
	MOVQ	cpu_area(GS), CX
	WRGSBASEQ	CX
	MOVQ	page_root(SP), CX
	MOVQ	CX, area_root(GS)
	MOVQ	area_exit(GS), CX
	MOVQ	frame_ip(SP), AX
	MOVQ	AX, 0(CX)
	MOVQ	frame_cs(SP), AX
	MOVQ	AX, 8(CX)
	MOVQ	frame_flags(SP), AX
	MOVQ	AX, 16(CX)
	MOVQ	frame_sp(SP), AX
	MOVQ	AX, 24(CX)
	MOVQ	frame_ss(SP), AX
	MOVQ	AX, 32(CX)
	POP_REGISTERS
	MOVQ	(page_second-frame_vector)(SP), SP
	MOVQ	SP, CR3
	MOVQ	area_exit(GS), SP
	SWAPGS
	IRETQ

// call is the target of the SYSCALL instruction: see loamTrap and loamUserCall.
call:
	TESTQ	CX, CX
	JPL	user
	JMP	runtime·loamTrap(SB)	// the call comes from ring 0
user:
	SWAPGS
	MOVQ	SP, area_scratch(GS)
	MOVQ	area_root(GS), SP
	MOVQ	SP, CR3
	MOVQ	area_cpu(GS), SP
	MOVQ	cpu_ist1(SP), SP
	PUSHQ	$userData
	PUSHQ	area_scratch(GS)
	PUSHQ	R11
	MOVQ	area_cpu(GS), R11
	WRGSBASEQ	R11
	MOVQ	0(SP), R11
	PUSHQ	$userCode
	PUSHQ	CX
	PUSHQ	$0
	PUSHQ	$vectorSyscall
	PUSH_REGISTERS
	MOVQ	SP, DI
	MOVQ	cpu_stack(GS), SP
	JMP	runtime·loamUserBack(SB)

// trap moves the frame of an exception or interrupt to the address in cpu_ist1. The stack then is the same as if the
// processor had used that address.
trap:
	TESTB	$3, vector_cs(SP)
	JEQ	inner
	PUSHQ	AX
enters:
	SWAPGS
	MOVQ	area_root(GS), AX
	MOVQ	AX, CR3
	MOVQ	area_cpu(GS), AX
	WRGSBASEQ	AX
	MOVQ	cpu_ist1(GS), AX
	XCHGQ	AX, SP
	MOVE(8)
	PUSHQ	0(AX)
	MOVQ	$0, 0(AX)
	PUSH_OTHERS
	CLD
	JMP	runtime·loamUserTrap(SB)
inner:
	MOVQ	AX, cpu_scratch(GS)
	MOVQ	cpu_ist1(GS), AX
	XCHGQ	AX, SP
	MOVE(0)
	MOVQ	cpu_scratch(GS), AX
	JMP	runtime·loamAnyTrap(SB)

// debug handles debug exceptions as the function of this name in loam_entry_amd64.s does.
debug:
	PUSHQ	AX
	PUSHQ	CX
	TESTB	$3, debug_cs(SP)
	JNE	stepped
	MOVQ	debug_ip(SP), AX
	LEAQ	runtime·loamIsolated(SB), CX
	SUBQ	CX, AX
	SHRQ	$4, AX
	CMPQ	AX, $stubDebug
	JEQ	lost
	CMPQ	AX, $stubCall
	JLS	delayed
	POPQ	CX
	POPQ	AX
	MOVQ	$0, -8(SP)
	MOVQ	$0, -16(SP)
	JMP	inner
stepped:
	POPQ	CX
	MOVQ	$0, -8(SP)
	JMP	enters
delayed:
	XORL	AX, AX
	MOVQ	AX, DR6
	ORL	$flagResume, debug_flags(SP)
	POPQ	CX
	POPQ	AX
	MOVQ	$0, -8(SP)
	MOVQ	$0, -16(SP)
	ADDQ	$16, SP
	IRETQ
lost:
	POPQ	CX
	POPQ	AX

// last handles exceptions that always end the machine. They may occur with either root table and before or after
// SWAPGS, so the values of CR3 and GS are read from their own stack. The frame is moved to the stack for crashes.
last:
	PUSH_REGISTERS
	CLD
	MOVQ	(frameSize+8)(SP), AX
	MOVQ	AX, CR3
	MOVQ	frameSize(SP), AX
	MOVQ	AX, DX
	SHRQ	$32, DX
	MOVL	$0xc0000101, CX	// IA32_GS_BASE
	WRMSR
	MOVQ	SP, SI
	MOVQ	cpu_crashEnd(GS), DI
	SUBQ	$frameSize, DI
	MOVQ	DI, SP
	MOVL	$(frameSize/8), CX
	REP; MOVSQ
	JMP	runtime·loamFatal(SB)
