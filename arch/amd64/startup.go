package amd64

import "encoding/binary"

// StartupSize is an upper bound of the bytes that StartupCode writes.
const StartupSize = 128

// StartupCode writes the code at which a CPU starts into b, the content of a page below 1 MiB. page is the physical
// address of that page (SDM volume 3, 9.4.4). The CPU starts in real mode at the first byte. The code switches directly
// to 64-bit mode with the page tables at root, and jumps to entry with argument in RBX. The tables at root must map the
// page at its physical address. noExecute enables no-execute pages, which the tables may contain.
//
// The code is written as bytes, since the assembler has no 16-bit mode. Each line is an instruction.
func StartupCode(b []byte, page, root uint32, noExecute bool, entry, argument uint64) {
	le := binary.LittleEndian
	n := 0
	code := func(bytes ...byte) { n += copy(b[n:], bytes) }
	code32 := func(v uint32, bytes ...byte) {
		n += copy(b[n:], bytes)
		le.PutUint32(b[n:], v)
		n += 4
	}
	const gdt, pointer = 96, 120 // offsets of the descriptors and of the operand of LGDT
	table := NewGDT(0)
	for i, d := range table[:3] {
		le.PutUint64(b[gdt+8*i:], d)
	}
	le.PutUint16(b[pointer:], 3*8-1)
	le.PutUint32(b[pointer+2:], page+gdt)

	const operand32 = 0x66
	extended := uint32(EFERLongMode)
	if noExecute {
		extended |= EFERNoExecute
	}
	code(0xfa)                                    // cli
	code(0xfc)                                    // cld
	code(0x8c, 0xc8)                              // mov ax, cs
	code(0x8e, 0xd8)                              // mov ds, ax
	code(operand32, 0x0f, 0x01, 0x16, pointer, 0) // lgdt [pointer]
	code(0x0f, 0x20, 0xe0)                        // mov eax, cr4
	code(operand32, 0x83, 0xc8, 1<<5)             // or eax, PAE
	code(0x0f, 0x22, 0xe0)                        // mov cr4, eax
	code32(root, operand32, 0xb8)                 // mov eax, root
	code(0x0f, 0x22, 0xd8)                        // mov cr3, eax
	code32(MSREFER, operand32, 0xb9)              // mov ecx, EFER
	code(0x0f, 0x32)                              // rdmsr
	code32(extended, operand32, 0x0d)             // or eax, LME and NXE
	code(0x0f, 0x30)                              // wrmsr
	code(0x0f, 0x20, 0xc0)                        // mov eax, cr0
	code32(1<<31|1, operand32, 0x0d)              // or eax, PG | PE
	code(0x0f, 0x22, 0xc0)                        // mov cr0, eax
	code32(page+uint32(n)+8, operand32, 0xea)     // jmp code:next
	code(CodeSelector, 0)                         //
	code(0x48, 0xb8)                              // next: mov rax, entry
	le.PutUint64(b[n:], entry)
	n += 8
	code(0x48, 0xbb) // mov rbx, argument
	le.PutUint64(b[n:], argument)
	n += 8
	code(0xff, 0xe0) // jmp rax
}
