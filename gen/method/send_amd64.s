//go:build linux && !dpdk

// Builds with DPDK use cgo, and a package that does has no assembly of Go.

#include "textflag.h"

// func sendTimes(fd int, b *byte, length, flags uintptr, times int) (sent int, errno uintptr)
//
// SYSCALL leaves all registers as they were but AX, CX and R11. It returns a number from
// -4095 to -1 for an error (syscall(2)). Nothing here needs a stack, so NOSPLIT.
TEXT ·sendTimes(SB), NOSPLIT, $0-56
	MOVQ fd+0(FP), DI
	MOVQ b+8(FP), SI
	MOVQ length+16(FP), DX
	MOVQ flags+24(FP), R10
	MOVQ times+32(FP), BX
	XORQ R8, R8 // no address
	XORQ R9, R9
	MOVQ $0, errno+48(FP)
again:
	MOVQ $44, AX // sendto
	SYSCALL
	CMPQ AX, $-4095
	JCC  failed
	DECQ BX
	JNZ  again
	JMP  done
failed:
	NEGQ AX
	MOVQ AX, errno+48(FP)
done:
	MOVQ times+32(FP), AX
	SUBQ BX, AX
	MOVQ AX, sent+40(FP)
	RET
