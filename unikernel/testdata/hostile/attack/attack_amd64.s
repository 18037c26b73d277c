#include "textflag.h"

// Syscall makes a system call by a SYSCALL instruction, which a process's filter rejects.
//
//	func Syscall(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
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

// Gate calls the runtime's own function for system calls, whose address is in gateAt. That function takes
// its arguments in registers, and returns the errno in CX.
//
//	func Gate(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
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

// gate jumps to the function whose address the Go code has stored in gateAt.
TEXT ·gate(SB), NOSPLIT, $0-0
	MOVQ ·gateAt(SB), R11
	JMP  R11

// past jumps to the SYSCALL instruction of the runtime's function, past the code before it.
//
//	func past(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
TEXT ·past(SB), NOSPLIT, $0-64
	MOVQ number+0(FP), AX
	MOVQ a1+8(FP), DI
	MOVQ a2+16(FP), SI
	MOVQ a3+24(FP), DX
	MOVQ a4+32(FP), R10
	MOVQ a5+40(FP), R8
	MOVQ a6+48(FP), R9
	MOVQ ·instructionAt(SB), R11
	// The code after that instruction returns here, with the result in AX, and 0 or an errno in CX.
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

// Syscall32 makes a system call of 32-bit programs, by INT 0x80.
//
//	func Syscall32(number, a1, a2, a3 uintptr) (result int32)
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

// Early creates the file at path and writes to it.
//
//	func Early()
TEXT ·Early(SB), NOSPLIT, $0-0
	MOVQ $2, AX // the number of open(2)
	LEAQ ·path(SB), DI
	MOVQ $0x41, SI // O_CREAT | O_WRONLY
	MOVQ $0x1a4, DX
	SYSCALL
	MOVQ AX, DI
	MOVQ $1, AX // the number of write(2)
	LEAQ ·path(SB), SI
	MOVQ $4, DX
	SYSCALL
	RET

GLOBL ·frame(SB), NOPTR, $2048

// Sigreturn calls rt_sigreturn(2) with a forged frame, whose registers make an open(2) of path at the
// runtime's SYSCALL instruction. The frame is a struct ucontext: flags, link, stack, then struct sigcontext.
//
//	func Sigreturn(path uintptr)
TEXT ·Sigreturn(SB), NOSPLIT, $0-8
	MOVQ path+0(FP), AX
	LEAQ ·frame+1024(SB), BX
	MOVQ AX, 104(BX) // register DI: the path
	MOVQ $0x41, 112(BX) // register SI: O_CREAT | O_WRONLY
	MOVQ $0x1a4, 136(BX) // register DX: mode 0644
	MOVQ $2, 144(BX) // register AX: the number of open(2)
	MOVQ BX, 160(BX) // register SP
	MOVQ ·instructionAt(SB), CX
	MOVQ CX, 168(BX) // instruction pointer
	MOVQ $0x202, 176(BX) // processor flags
	MOVQ $0x2b000000000033, CX
	MOVQ CX, 184(BX) // segment selectors CS, GS, FS and SS
	MOVQ BX, SP
	MOVQ $15, AX
	SYSCALL
	RET
