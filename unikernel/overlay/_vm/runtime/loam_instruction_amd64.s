// The functions of loam/arch/amd64 that are instructions: see instruction.go
// there. They follow Go's internal calling convention: arguments and results in
// AX, BX, CX, DI; R14 and X15 are kept.

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

TEXT loam∕arch∕amd64·In16<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	INW
	MOVWLZX	AX, AX
	RET

TEXT loam∕arch∕amd64·In32<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	INL
	RET

TEXT loam∕arch∕amd64·Out16<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	MOVL	BX, AX
	OUTW
	RET

TEXT loam∕arch∕amd64·Out32<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, DX
	MOVL	BX, AX
	OUTL
	RET

TEXT loam∕arch∕amd64·CPUID<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	BX, CX
	CPUID
	MOVL	DX, DI
	RET

TEXT loam∕arch∕amd64·ReadMSR<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, CX
	RDMSR
	SHLQ	$32, DX
	ORQ	DX, AX
	RET

TEXT loam∕arch∕amd64·WriteMSR<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVL	AX, CX
	MOVQ	BX, DX
	SHRQ	$32, DX
	MOVL	BX, AX
	WRMSR
	RET

TEXT loam∕arch∕amd64·ReadCR0<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	CR0, AX
	RET

TEXT loam∕arch∕amd64·WriteCR0<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, CR0
	RET

TEXT loam∕arch∕amd64·ReadCR2<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	CR2, AX
	RET

TEXT loam∕arch∕amd64·ReadCR3<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	CR3, AX
	RET

TEXT loam∕arch∕amd64·WriteCR3<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, CR3
	RET

TEXT loam∕arch∕amd64·ReadCR4<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	CR4, AX
	RET

TEXT loam∕arch∕amd64·WriteCR4<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, CR4
	RET

TEXT loam∕arch∕amd64·WriteXCR0<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, DX
	SHRQ	$32, DX
	XORL	CX, CX
	XSETBV
	RET

TEXT loam∕arch∕amd64·InvalidatePage<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	INVLPG	(AX)
	RET

// A far return reloads CS.
TEXT loam∕arch∕amd64·LoadGDT<ABIInternal>(SB),NOSPLIT,$16
	MOVW	BX, 0(SP)
	MOVQ	AX, 2(SP)
	LGDT	0(SP)
	MOVL	$0x10, AX
	MOVW	AX, SS
	XORL	AX, AX
	MOVW	AX, DS
	MOVW	AX, ES
	MOVW	AX, FS
	MOVW	AX, GS
	LEAQ	done<>(SB), AX
	MOVQ	AX, 0(SP)
	MOVQ	$8, 8(SP)
	JMP	far<>(SB)

// far returns to the address on the stack, and done from LoadGDT, whose frame has
// lost the two words.
TEXT far<>(SB),NOSPLIT|NOFRAME,$0
	RETFQ

TEXT done<>(SB),NOSPLIT|NOFRAME,$0
	POPQ	BP
	POPQ	AX
	JMP	AX

TEXT loam∕arch∕amd64·LoadIDT<ABIInternal>(SB),NOSPLIT,$16
	MOVW	BX, 0(SP)
	MOVQ	AX, 2(SP)
	LIDT	0(SP)
	RET

TEXT loam∕arch∕amd64·LoadTask<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	LTR	AX
	RET

// The assembler has no LLDT.
TEXT loam∕arch∕amd64·LoadLocal<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	BYTE $0x0f; BYTE $0x00; BYTE $0xd0	// LLDT AX
	RET

TEXT loam∕arch∕amd64·Timestamp<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	LFENCE
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	RET

TEXT loam∕arch∕amd64·XSave<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	AX, CX
	MOVL	BX, AX
	XORL	DX, DX
	XSAVE64	(CX)
	RET

TEXT loam∕arch∕amd64·Random<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	RDRANDQ	AX
	SETCS	BX
	RET

TEXT loam∕arch∕amd64·Fence<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	MFENCE
	LFENCE
	RET

TEXT loam∕arch∕amd64·Pause<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	PAUSE
	RET

// STI lets interrupts in only behind the next instruction, so none is missed.
TEXT loam∕arch∕amd64·Doze<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	STI
	HLT
	CLI
	RET

TEXT loam∕arch∕amd64·Halt<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	CLI
	HLT
	JMP	-2(PC)
