#include "textflag.h"

// Code fragments that run in ring 3. Each is copied to the start of a page of a process, so it contains no
// absolute address. SYSCALL instructions are written as bytes, because a build for Loam replaces those
// that the assembler knows.
#define SYSCALL_INSTRUCTION BYTE $0x0f; BYTE $0x05

// fragment returns the address of a fragment, by its number in the table fragments.
//
//	func fragment(number int) uintptr
TEXT ·fragment(SB),NOSPLIT,$0-16
	MOVQ	number+0(FP), AX
	LEAQ	fragments<>(SB), CX
	MOVQ	(CX)(AX*8), AX
	MOVQ	AX, ret+8(FP)
	RET

DATA	fragments<>+0(SB)/8, $calls<>(SB)
DATA	fragments<>+8(SB)/8, $spin<>(SB)
DATA	fragments<>+16(SB)/8, $touch<>(SB)
DATA	fragments<>+24(SB)/8, $divide<>(SB)
DATA	fragments<>+32(SB)/8, $keep<>(SB)
DATA	fragments<>+40(SB)/8, $watch<>(SB)
DATA	fragments<>+48(SB)/8, $count<>(SB)
GLOBL	fragments<>(SB), RODATA, $56

// debugState returns the flags of the CPU, and DR7, the register that enables breakpoints.
//
//	func debugState() (flags, control uint64)
TEXT ·debugState(SB),NOSPLIT,$0-16
	PUSHFQ
	POPQ	AX
	MOVQ	AX, flags+0(FP)
	MOVQ	DR7, AX
	MOVQ	AX, control+8(FP)
	RET

// calls calls getpid forever. R12 is the expected result, and BX counts wrong results.
TEXT calls<>(SB),NOSPLIT|NOFRAME,$0
	XORL	BX, BX
again:
	MOVL	$39, AX
	SYSCALL_INSTRUCTION
	CMPQ	AX, R12	// R12 is the expected result
	JEQ	again
	INCQ	BX
	JMP	again

// spin increments BX forever.
TEXT spin<>(SB),NOSPLIT|NOFRAME,$0
again:
	INCQ	BX
	JMP	again

// count increments the word at address R13 forever.
TEXT count<>(SB),NOSPLIT|NOFRAME,$0
again:
	INCQ	(R13)
	JMP	again

// touch writes to R13 pages, starting at address DI. After the last page, it makes a system call with the
// address after that page in DI.
TEXT touch<>(SB),NOSPLIT|NOFRAME,$0
again:
	MOVQ	DI, 0(DI)
	MOVQ	0(DI), CX
	ADDQ	$4096, DI
	DECQ	R13
	JNE	again
	MOVL	$39, AX
	SYSCALL_INSTRUCTION
	JMP	again

// divide causes an exception: a division by zero.
TEXT divide<>(SB),NOSPLIT|NOFRAME,$0
	XORL	CX, CX
	DIVQ	CX
	JMP	-1(PC)

// keep fills the registers with values computed from R12, and then checks forever that they are preserved
// across system calls and interrupts: general registers, x87, SSE, AVX, and the bases of FS and GS. R13 is
// the address of a page for comparisons. A lost value ends the fragment by UD2.
TEXT keep<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	R12, 2048(R13)
	MOVQ	R12, CX
	ANDL	$3, CX
	SHLL	$13, CX	// the rounding mode in MXCSR, bits 13 and 14
	ORL	$0x1f80, CX
	MOVL	CX, 2056(R13)
	LDMXCSR	2056(R13)
	BYTE $0x41; BYTE $0xdf; BYTE $0xad; LONG $2048	// FILD 2048(R13): load the integer R12
	BYTE $0xd9; BYTE $0xeb	// FLDPI
	MOVQ	R12, X0
	VPBROADCASTQ	X0, Y0
	VPADDQ	Y0, Y0, Y1
	VPADDQ	Y0, Y1, Y2
	VPADDQ	Y0, Y2, Y3
	VPADDQ	Y0, Y3, Y4
	VPADDQ	Y0, Y4, Y5
	VPADDQ	Y0, Y5, Y6
	VPADDQ	Y0, Y6, Y7
	VPADDQ	Y0, Y7, Y8
	VPADDQ	Y0, Y8, Y9
	VPADDQ	Y0, Y9, Y10
	VPADDQ	Y0, Y10, Y11
	VPADDQ	Y0, Y11, Y12
	VPADDQ	Y0, Y12, Y13
	VPADDQ	Y0, Y13, Y14
	VPADDQ	Y0, Y14, Y15
	LEAQ	1(R12), R14
	LEAQ	2(R12), DX
	LEAQ	3(R12), R15
	LEAQ	4(R12), R9
	LEAQ	5(R12), R10
	LEAQ	6(R12), R8
again:
	FXSAVE64	(R13)
	VEXTRACTF128	$1, Y0, 512(R13)
	VEXTRACTF128	$1, Y1, 528(R13)
	VEXTRACTF128	$1, Y2, 544(R13)
	VEXTRACTF128	$1, Y3, 560(R13)
	VEXTRACTF128	$1, Y4, 576(R13)
	VEXTRACTF128	$1, Y5, 592(R13)
	VEXTRACTF128	$1, Y6, 608(R13)
	VEXTRACTF128	$1, Y7, 624(R13)
	VEXTRACTF128	$1, Y8, 640(R13)
	VEXTRACTF128	$1, Y9, 656(R13)
	VEXTRACTF128	$1, Y10, 672(R13)
	VEXTRACTF128	$1, Y11, 688(R13)
	VEXTRACTF128	$1, Y12, 704(R13)
	VEXTRACTF128	$1, Y13, 720(R13)
	VEXTRACTF128	$1, Y14, 736(R13)
	VEXTRACTF128	$1, Y15, 752(R13)
	MOVL	$39, AX
	SYSCALL_INSTRUCTION
	INCQ	BX
	TESTQ	$63, BX
	JNE	compare
	MOVL	$1000000, CX
wait:
	DECQ	CX
	JNE	wait
compare:
	FXSAVE64	1024(R13)
	VEXTRACTF128	$1, Y0, 1536(R13)
	VEXTRACTF128	$1, Y1, 1552(R13)
	VEXTRACTF128	$1, Y2, 1568(R13)
	VEXTRACTF128	$1, Y3, 1584(R13)
	VEXTRACTF128	$1, Y4, 1600(R13)
	VEXTRACTF128	$1, Y5, 1616(R13)
	VEXTRACTF128	$1, Y6, 1632(R13)
	VEXTRACTF128	$1, Y7, 1648(R13)
	VEXTRACTF128	$1, Y8, 1664(R13)
	VEXTRACTF128	$1, Y9, 1680(R13)
	VEXTRACTF128	$1, Y10, 1696(R13)
	VEXTRACTF128	$1, Y11, 1712(R13)
	VEXTRACTF128	$1, Y12, 1728(R13)
	VEXTRACTF128	$1, Y13, 1744(R13)
	VEXTRACTF128	$1, Y14, 1760(R13)
	VEXTRACTF128	$1, Y15, 1776(R13)
	MOVQ	R13, SI
	LEAQ	1024(R13), DI
	MOVL	$96, CX
	REP;	CMPSQ
	JNE	bad
	RDFSBASEQ	AX
	CMPQ	AX, R12
	JNE	bad
	RDGSBASEQ	AX
	CMPQ	AX, R12
	JNE	bad
	LEAQ	1(R12), AX
	CMPQ	AX, R14
	JNE	bad
	INCQ	AX
	CMPQ	AX, DX
	JNE	bad
	INCQ	AX
	CMPQ	AX, R15
	JNE	bad
	INCQ	AX
	CMPQ	AX, R9
	JNE	bad
	INCQ	AX
	CMPQ	AX, R10
	JNE	bad
	INCQ	AX
	CMPQ	AX, R8
	JNE	bad
	VPADDQ	Y0, Y1, Y1
	VPADDQ	Y0, Y2, Y2
	VPADDQ	Y0, Y3, Y3
	VPADDQ	Y0, Y4, Y4
	VPADDQ	Y0, Y5, Y5
	VPADDQ	Y0, Y6, Y6
	VPADDQ	Y0, Y7, Y7
	VPADDQ	Y0, Y8, Y8
	VPADDQ	Y0, Y9, Y9
	VPADDQ	Y0, Y10, Y10
	VPADDQ	Y0, Y11, Y11
	VPADDQ	Y0, Y12, Y12
	VPADDQ	Y0, Y13, Y13
	VPADDQ	Y0, Y14, Y14
	VPADDQ	Y0, Y15, Y15
	JMP	again
bad:
	UD2

// watch reads the word at address R13 until the word equals R12, and then executes UD2.
TEXT watch<>(SB),NOSPLIT|NOFRAME,$0
again:
	INCQ	BX
	CMPQ	R12, (R13)
	JNE	again
	UD2
