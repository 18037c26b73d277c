package image

import (
	"encoding/binary"

	"loam/arch/amd64"
	"loam/boot"
)

// The entry code. A monitor enters it at a physical address, in 32-bit protected mode with flat segments,
// without paging and without a stack. EBX contains the address of the monitor's description of the machine,
// and is preserved. EAX may contain the kind of that description, and is copied to ESI. The code fills the
// page tables of package boot and switches to 64-bit mode (SDM volume 3, 10.8.5).
//
// It is machine code written out by hand, because the Go assembler has no 32-bit mode for amd64. Each line
// is one instruction, with its text in Intel syntax.
//
// Rejected: a stub in its own file, built with another assembler and linker. It takes more code than this.

// The global descriptor table and its pointer precede the code.
const (
	gdtEntries  = 3
	gdtPointer  = gdtEntries * 8
	entryOffset = 32
)

// entryCode returns the code for physical address at. tables is the physical address of the page tables.
// entry is the virtual address to jump to.
func entryCode(at, tables uint32, entry uint64) []byte {
	le := binary.LittleEndian
	gdt := amd64.NewGDT(0)
	var b []byte
	for _, d := range gdt[:gdtEntries] {
		b = le.AppendUint64(b, d)
	}
	b = le.AppendUint16(b, gdtEntries*8-1)
	b = le.AppendUint32(b, at)
	b = append(b, 0, 0) // padding up to entryOffset

	code := func(bytes ...byte) { b = append(b, bytes...) }
	code32 := func(v uint32, bytes ...byte) { b = le.AppendUint32(append(b, bytes...), v) }
	store := func(address, value uint32) { // mov dword [address], value
		code32(address, 0xc7, 0x05)
		code32(value)
	}
	page := func(n uint32) uint32 { return tables + n*pageSize }
	const present = amd64.PagePresent | amd64.PageWrite

	code(0xfa)       // cli
	code(0xfc)       // cld
	code(0x89, 0xc6) // mov esi, eax

	// Four tables of big pages. The upper halves of the entries are already zero.
	code32(page(boot.TableBig), 0xbf)       // mov edi, first
	code32(present|amd64.PageBig, 0xb8)     // mov eax, flags
	code32(boot.WindowAtBoot/bigPage, 0xb9) // mov ecx, count
	code(0x89, 0x07)                        // again: mov [edi], eax
	code32(bigPage, 0x05)                   //        add eax, 2 MiB
	code(0x83, 0xc7, 0x08)                  //        add edi, 8
	code(0x49)                              //        dec ecx
	code(0x75, 0xf3)                        //        jnz again
	for i := range uint32(4) {
		store(page(boot.TableLow)+8*i, page(boot.TableBig+i)|present)
	}
	store(page(boot.TableHigh)+8*index(boot.Image, 30), page(boot.TableBig)|present)
	store(page(boot.TableRoot), page(boot.TableLow)|present)
	store(page(boot.TableRoot)+8*index(boot.Window, 39), page(boot.TableLow)|present)
	store(page(boot.TableRoot)+8*index(boot.Image, 39), page(boot.TableHigh)|present)

	code32(page(boot.TableRoot), 0xb8)      // mov eax, root
	code(0x0f, 0x22, 0xd8)                  // mov cr3, eax
	code(0x0f, 0x20, 0xe0)                  // mov eax, cr4
	code(0x83, 0xc8, 1<<5)                  // or eax, PAE
	code(0x0f, 0x22, 0xe0)                  // mov cr4, eax
	code32(amd64.MSREFER, 0xb9)             // mov ecx, EFER
	code(0x0f, 0x32)                        // rdmsr
	code32(amd64.EFERLongMode, 0x0d)        // or eax, LME
	code(0x0f, 0x30)                        // wrmsr
	code(0x0f, 0x20, 0xc0)                  // mov eax, cr0
	code32(1<<31|1<<0, 0x0d)                // or eax, PG | PE
	code(0x0f, 0x22, 0xc0)                  // mov cr0, eax
	code32(at+gdtPointer, 0x0f, 0x01, 0x15) // lgdt [pointer]
	code32(at+uint32(len(b))+7, 0xea)       // jmp code:next
	code(amd64.CodeSelector, 0)
	code(0x48, 0xb8) // next: mov rax, entry
	b = le.AppendUint64(b, entry)
	code(0xff, 0xe0) // jmp rax
	return b
}

const bigPage = amd64.BigPageSize

// index returns the index of the entry for an address, in a table whose entries cover 1<<shift bytes each.
func index(va uint64, shift int) uint32 { return uint32(va >> shift & 511) }
