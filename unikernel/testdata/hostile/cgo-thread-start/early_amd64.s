#include "textflag.h"

DATA _cgo_thread_start+0(SB)/8, $·early(SB)
GLOBL _cgo_thread_start(SB), NOPTR|DUPOK, $8

TEXT ·early(SB), NOSPLIT, $0-0
	MOVQ $2, AX
	LEAQ ·path(SB), DI
	MOVQ $0x41, SI
	MOVQ $0x1a4, DX
	SYSCALL
	RET

DATA ·path+0(SB)/8, $"/tmp/loa"
DATA ·path+8(SB)/8, $"m-hostil"
DATA ·path+16(SB)/8, $"e/mark\x00\x00"
GLOBL ·path(SB), NOPTR|RODATA, $24
