#include "funcdata.h"
#include "textflag.h"

// call makes a system call by a SYSCALL instruction.
//
//	func call(trap, a1, a2, a3, a4, a5, a6 uintptr) uintptr
TEXT ·call(SB),NOSPLIT,$0-64
	MOVQ	trap+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	a4+32(FP), R10
	MOVQ	a5+40(FP), R8
	MOVQ	a6+48(FP), R9
	SYSCALL
	MOVQ	AX, ret+56(FP)
	RET

// send writes eight bytes of its stack frame to fd. It returns the bytes as they are afterwards, or 0 if
// the call fails.
//
//	func send(fd uintptr) (first uint64)
TEXT ·send(SB),NOSPLIT,$16-16
	NO_LOCAL_POINTERS
	MOVQ	$0x6b6361747320610a, AX	// "\na stack" in little-endian order
	MOVQ	AX, text-16(SP)
	LEAQ	text-16(SP), SI
	MOVQ	fd+0(FP), DI
	MOVQ	$8, DX
	MOVQ	$1, AX	// the number of write(2)
	SYSCALL
	XORL	BX, BX
	CMPQ	AX, $8
	JNE	done
	MOVQ	(SI), BX	// the call must preserve SI, which points to the text
done:
	MOVQ	BX, first+8(FP)
	RET

#define FILL(r, n) MOVQ $(0x1000+n), r
#define TEST(r, n) CMPQ r, $(0x1000+n); JNE lost
#define FILLX(r, n) MOVQ $(0x2000+n), AX; MOVQ AX, r
#define TESTX(r, n) MOVQ r, AX; CMPQ AX, $(0x2000+n); JNE lost

// keeps makes a system call and reports whether the call has preserved all registers that SYSCALL preserves.
//
//	func keeps(trap, fd uintptr) bool
TEXT ·keeps(SB),NOSPLIT,$0-17
	FILLX(X0, 0); FILLX(X1, 1); FILLX(X2, 2); FILLX(X3, 3)
	FILLX(X4, 4); FILLX(X5, 5); FILLX(X6, 6); FILLX(X7, 7)
	FILLX(X8, 8); FILLX(X9, 9); FILLX(X10, 10); FILLX(X11, 11)
	FILLX(X12, 12); FILLX(X13, 13)
	FILL(BX, 1); FILL(DX, 2); FILL(SI, 3); FILL(R8, 5); FILL(R9, 6)
	FILL(R10, 7); FILL(R12, 8); FILL(R13, 9); FILL(R15, 10)
	MOVQ	fd+8(FP), DI
	MOVQ	trap+0(FP), AX
	SYSCALL
	TEST(BX, 1); TEST(DX, 2); TEST(SI, 3); TEST(R8, 5); TEST(R9, 6)
	TEST(R10, 7); TEST(R12, 8); TEST(R13, 9); TEST(R15, 10)
	TESTX(X0, 0); TESTX(X1, 1); TESTX(X2, 2); TESTX(X3, 3)
	TESTX(X4, 4); TESTX(X5, 5); TESTX(X6, 6); TESTX(X7, 7)
	TESTX(X8, 8); TESTX(X9, 9); TESTX(X10, 10); TESTX(X11, 11)
	TESTX(X12, 12); TESTX(X13, 13)
	MOVB	$1, kept+16(FP)
	RET
lost:
	MOVB	$0, kept+16(FP)
	RET
