// Where a program that was linked for a virtual machine is entered: the way to
// loam/kernel.Start, which is ordinary Go, on a stack and a g of its own.

#include "textflag.h"

#define g_stackLow	0
#define g_stackHigh	8
#define g_guard0	16
#define g_guard1	24

// How much stack functions take without asking: abi.StackSmall, and what nosplit
// functions may have.
#define guard	928

#define bootStackSize	32768
#define gSize	1024

// loamStart is where the program is entered, in 64-bit mode, by the code that
// unikernel/image puts in front: RBX has the physical address of what the
// monitor says.
TEXT runtime·loamStart(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	CLI
	CLD
	LEAQ	loamBootStack<>(SB), AX
	LEAQ	bootStackSize(AX), SP
	ANDQ	$~15, SP
	LEAQ	loamKernelG<>(SB), R14
	MOVQ	AX, g_stackLow(R14)
	MOVQ	SP, g_stackHigh(R14)
	ADDQ	$guard, AX
	MOVQ	AX, g_guard0(R14)
	MOVQ	AX, g_guard1(R14)

	// SSE, which compiled code uses: SDM volume 3, 14.1.
	MOVQ	CR0, AX
	ANDQ	$~(1<<2 | 1<<3), AX	// no emulation, no task switch
	ORQ	$(1<<1 | 1<<5), AX	// monitor coprocessor, native errors
	MOVQ	AX, CR0
	MOVQ	CR4, AX
	ORQ	$(1<<9 | 1<<10), AX	// SSE, and its exceptions
	MOVQ	AX, CR4
	XORPS	X15, X15
	XORL	BP, BP

	MOVL	BX, AX
	CALL	loam∕kernel·Start<ABIInternal>(SB)
	CLI
	HLT
	JMP	-2(PC)

// Only the bounds of the stack are used of it.
GLOBL loamKernelG<>(SB), NOPTR, $gSize
GLOBL loamBootStack<>(SB), NOPTR, $bootStackSize

