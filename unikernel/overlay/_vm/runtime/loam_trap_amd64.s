// See loam_trap.go.

#include "go_asm.h"
#include "funcdata.h"
#include "textflag.h"
#include "go_tls.h"

// The argument of loamServeRegisters is at 0(SP), and the registers above it; the
// compiler compares their size with the frame's.
#define at 8

#define GENERAL(MOVE) \
	MOVE(AX, loamRegisters_ax); \
	MOVE(BX, loamRegisters_bx); \
	MOVE(CX, loamRegisters_cx); \
	MOVE(DX, loamRegisters_dx); \
	MOVE(SI, loamRegisters_si); \
	MOVE(DI, loamRegisters_di); \
	MOVE(R8, loamRegisters_r8); \
	MOVE(R9, loamRegisters_r9); \
	MOVE(R10, loamRegisters_r10); \
	MOVE(R11, loamRegisters_r11); \
	MOVE(R12, loamRegisters_r12); \
	MOVE(R13, loamRegisters_r13); \
	MOVE(R14, loamRegisters_r14); \
	MOVE(R15, loamRegisters_r15)

#define VECTORS(MOVE) \
	MOVE(X0, 0); MOVE(X1, 1); MOVE(X2, 2); MOVE(X3, 3); \
	MOVE(X4, 4); MOVE(X5, 5); MOVE(X6, 6); MOVE(X7, 7); \
	MOVE(X8, 8); MOVE(X9, 9); MOVE(X10, 10); MOVE(X11, 11); \
	MOVE(X12, 12); MOVE(X13, 13); MOVE(X14, 14); MOVE(X15, 15)

#define SAVE(r, offset) MOVQ r, (at+offset)(SP)
#define RESTORE(r, offset) MOVQ (at+offset)(SP), r
#define SAVE_VECTOR(r, n) MOVUPS r, (at+loamRegisters_vector+16*n)(SP)
#define RESTORE_VECTOR(r, n) MOVUPS (at+loamRegisters_vector+16*n)(SP), r

TEXT runtime·loamServeTrap(SB),NOSPLIT,$400-0
	NO_LOCAL_POINTERS
	GENERAL(SAVE)
	VECTORS(SAVE_VECTOR)
	LEAQ	at(SP), AX
	MOVQ	AX, (at+loamRegisters_self)(SP)
	MOVQ	AX, 0(SP)
	MOVQ	(TLS), CX
	MOVQ	(g_stack+stack_lo)(CX), DX
	MOVQ	DX, (at+loamRegisters_low)(SP)
	MOVQ	(g_stack+stack_hi)(CX), DX
	MOVQ	DX, (at+loamRegisters_high)(SP)
	CALL	runtime·loamServeRegisters(SB)
	VECTORS(RESTORE_VECTOR)
	GENERAL(RESTORE)
	RET
