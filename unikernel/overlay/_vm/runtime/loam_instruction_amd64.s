// The functions of loam/arch/amd64 that are instructions: see instruction.go
// there. They follow Go's internal calling convention: arguments in AX and BX, the
// result in AX; R14 and X15 are kept.

#include "textflag.h"

TEXT loam∕arch∕amd64·In8<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	INB
	MOVBLZX	AX, AX
	RET

TEXT loam∕arch∕amd64·Out8<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	MOVL	BX, AX
	OUTB
	RET

TEXT loam∕arch∕amd64·Pause<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	PAUSE
	RET

TEXT loam∕arch∕amd64·Halt<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	HLT
	RET
