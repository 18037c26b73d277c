// Functions of loam/arch/amd64 that each execute one privileged or special instruction. arch/amd64/instruction.go
// declares and documents them. They follow Go's internal calling convention: arguments and results are in
// AX, BX, CX and DI, and R14 and X15 are preserved.

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

// LoadGDT loads the descriptor table and reloads all segment registers. CS can only be reloaded by a far
// return, to done.
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

// far returns to done, whose address and selector are the two words at SP. The far return removes these
// words. done therefore removes only the rest of LoadGDT's stack frame, and returns to its caller.
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

// LoadLocal loads the register of the local descriptor table. The assembler does not know LLDT.
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

// Doze halts until the next interrupt. STI enables interrupts only after the next instruction, so no
// interrupt can occur between STI and HLT and be missed.
TEXT loam∕arch∕amd64·Doze<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	STI
	HLT
	CLI
	RET

TEXT loam∕arch∕amd64·Halt<ABIInternal>(SB),NOSPLIT|NOFRAME,$0
	CLI
	HLT
	JMP	-2(PC)
