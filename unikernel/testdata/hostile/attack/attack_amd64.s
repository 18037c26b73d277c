#include "textflag.h"

// func Syscall(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
TEXT ·Syscall(SB), NOSPLIT, $0-64
	MOVQ number+0(FP), AX
	MOVQ a1+8(FP), DI
	MOVQ a2+16(FP), SI
	MOVQ a3+24(FP), DX
	MOVQ a4+32(FP), R10
	MOVQ a5+40(FP), R8
	MOVQ a6+48(FP), R9
	SYSCALL
	MOVQ AX, result+56(FP)
	RET

// func Gate(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
// The function takes its arguments in registers, and returns the negative errno in none of them but CX.
TEXT ·Gate(SB), NOSPLIT, $0-64
	MOVQ number+0(FP), AX
	MOVQ a1+8(FP), BX
	MOVQ a2+16(FP), CX
	MOVQ a3+24(FP), DI
	MOVQ a4+32(FP), SI
	MOVQ a5+40(FP), R8
	MOVQ a6+48(FP), R9
	CALL ·gate(SB)
	TESTQ CX, CX
	JZ   good
	NEGQ CX
	MOVQ CX, AX
good:
	MOVQ AX, result+56(FP)
	RET

// gate finds the function by its address, which the Go half put there.
TEXT ·gate(SB), NOSPLIT, $0-0
	MOVQ ·gateAt(SB), R11
	JMP  R11

// func past(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
TEXT ·past(SB), NOSPLIT, $0-64
	MOVQ number+0(FP), AX
	MOVQ a1+8(FP), DI
	MOVQ a2+16(FP), SI
	MOVQ a3+24(FP), DX
	MOVQ a4+32(FP), R10
	MOVQ a5+40(FP), R8
	MOVQ a6+48(FP), R9
	MOVQ ·instructionAt(SB), R11
	// What follows the instruction returns to our caller with the result in AX, and 0 or an errno in CX.
	CALL ·jump(SB)
	TESTQ CX, CX
	JZ   fine
	NEGQ CX
	MOVQ CX, AX
fine:
	MOVQ AX, result+56(FP)
	RET

TEXT ·jump(SB), NOSPLIT, $0-0
	JMP R11

// func Syscall32(number, a1, a2, a3 uintptr) (result int32)
TEXT ·Syscall32(SB), NOSPLIT, $0-36
	MOVQ number+0(FP), AX
	MOVQ a1+8(FP), BX
	MOVQ a2+16(FP), CX
	MOVQ a3+24(FP), DX
	INT  $0x80
	MOVL AX, result+32(FP)
	RET

DATA ·path+0(SB)/8, $"/tmp/loa"
DATA ·path+8(SB)/8, $"m-hostil"
DATA ·path+16(SB)/8, $"e/mark\x00\x00"
GLOBL ·path(SB), NOPTR|RODATA, $24

// func Early()
TEXT ·Early(SB), NOSPLIT, $0-0
	MOVQ $2, AX // open
	LEAQ ·path(SB), DI
	MOVQ $0x41, SI // O_CREAT | O_WRONLY
	MOVQ $0x1a4, DX
	SYSCALL
	MOVQ AX, DI
	MOVQ $1, AX // write
	LEAQ ·path(SB), SI
	MOVQ $4, DX
	SYSCALL
	RET

GLOBL ·frame(SB), NOPTR, $2048

// func Sigreturn(path uintptr)
// Fills a struct ucontext (flags, link, stack, then struct sigcontext) and makes it the stack.
TEXT ·Sigreturn(SB), NOSPLIT, $0-8
	MOVQ path+0(FP), AX
	LEAQ ·frame+1024(SB), BX
	MOVQ AX, 104(BX) // DI
	MOVQ $0x41, 112(BX) // SI: O_CREAT | O_WRONLY
	MOVQ $0x1a4, 136(BX) // DX
	MOVQ $2, 144(BX) // AX: open
	MOVQ BX, 160(BX) // SP
	MOVQ ·instructionAt(SB), CX
	MOVQ CX, 168(BX) // IP
	MOVQ $0x202, 176(BX) // flags
	MOVQ $0x2b000000000033, CX
	MOVQ CX, 184(BX) // CS, GS, FS, SS
	MOVQ BX, SP
	MOVQ $15, AX
	SYSCALL
	RET
