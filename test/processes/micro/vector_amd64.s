#include "textflag.h"

// moves stores the 16 vector registers in memory and loads them again, n times. These are the moves of Loam's kernel
// at a system call (unikernel/overlay/_vm/runtime/loam_user_amd64.s).
//
//	func moves(n int, memory *[512]byte)
TEXT ·moves(SB), NOSPLIT, $0-16
	MOVQ n+0(FP), CX
	MOVQ memory+8(FP), DI
next:
	VMOVDQU Y0, 0(DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 160(DI)
	VMOVDQU Y6, 192(DI)
	VMOVDQU Y7, 224(DI)
	VMOVDQU Y8, 256(DI)
	VMOVDQU Y9, 288(DI)
	VMOVDQU Y10, 320(DI)
	VMOVDQU Y11, 352(DI)
	VMOVDQU Y12, 384(DI)
	VMOVDQU Y13, 416(DI)
	VMOVDQU Y14, 448(DI)
	VMOVDQU Y15, 480(DI)
	VMOVDQU 0(DI), Y0
	VMOVDQU 32(DI), Y1
	VMOVDQU 64(DI), Y2
	VMOVDQU 96(DI), Y3
	VMOVDQU 128(DI), Y4
	VMOVDQU 160(DI), Y5
	VMOVDQU 192(DI), Y6
	VMOVDQU 224(DI), Y7
	VMOVDQU 256(DI), Y8
	VMOVDQU 288(DI), Y9
	VMOVDQU 320(DI), Y10
	VMOVDQU 352(DI), Y11
	VMOVDQU 384(DI), Y12
	VMOVDQU 416(DI), Y13
	VMOVDQU 448(DI), Y14
	VMOVDQU 480(DI), Y15
	DECQ CX
	JNE next
	VZEROUPPER
	RET

// hasAVX reports whether the processor and the kernel support AVX (SDM volume 1, 14.3).
//
//	func hasAVX() bool
TEXT ·hasAVX(SB), NOSPLIT, $0-1
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18000000, CX
	CMPL CX, $0x18000000	// AVX, and XGETBV is available
	JNE no
	XORL CX, CX
	XGETBV
	ANDL $6, AX
	CMPL AX, $6	// the kernel has enabled the SSE and AVX state
	JNE no
	MOVB $1, ret+0(FP)
	RET
no:
	MOVB $0, ret+0(FP)
	RET
