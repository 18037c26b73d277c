package efi

import (
	"unicode/utf16"

	"loam/arch/amd64"
	"loam/boot"
	"loam/internal/machinecode"
)

// The loader. The general registers have these values, which calls of the firmware preserve:
//
//	R12  handle of the application
//	R13  system table
//	R14  boot services
//	RBX  the program's memory
//	RBP  the structure of boot.ParseEFI
//	R15  the page tables, once they exist
//
// Each line is one instruction, with its text in Intel syntax.

// The allocated memory starts at a multiple of 2 MiB. It holds the program, then a page with the structure of
// boot.ParseEFI and the code that switches the page tables, then the memory map.
const (
	bigPage   = amd64.BigPageSize
	switchAt  = boot.EFITable + boot.EFIMaxTables*boot.EFITableSize // offset of the code in the page
	mapMemory = 256 << 10                                           // space for the memory map in bytes; an entry has 48
)

// Offsets in the system table and in the boot services: UEFI, 4.3 and 4.4.
const (
	systemConsole  = 0x40
	systemServices = 0x60
	systemCount    = 0x68
	systemTables   = 0x70

	consoleOutput = 0x08

	serviceAllocatePages = 0x28
	serviceGetMemoryMap  = 0x38
	serviceExit          = 0xe8
)

// The stack frame: space for the registers of a called function, its fifth argument, and variables.
const (
	frameSize    = 0x58
	frameFifth   = 0x20
	frameVersion = 0x38
	frameEntry   = 0x40 // size of an entry of the memory map
	frameValue   = 0x48 // an address, later the size of the memory map
	frameKey     = 0x50
)

// Messages of the loader.
const (
	noMemory = "loam: the machine has too little memory for the program and its files: give it more (-m)\r\n"
	noMap    = "loam: the firmware does not say where memory is: start the machine with other firmware\r\n"
	noExit   = "loam: the firmware does not end its boot services: start the machine with other firmware\r\n"
)

// loader returns the loader.
func (p *program) loader() []byte {
	c := &machinecode.Code{}
	// push rbx, rbp, rsi, rdi, r12, r13, r14, r15; sub rsp, frameSize
	c.Emit(0x53, 0x55, 0x56, 0x57, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48, 0x83, 0xec, frameSize)
	c.Emit(0xfc)                             // cld
	c.Emit(0x49, 0x89, 0xcc)                 // mov r12, rcx
	c.Emit(0x49, 0x89, 0xd5)                 // mov r13, rdx
	c.Emit(0x4c, 0x8b, 0x72, systemServices) // mov r14, [rdx+systemServices]
	p.allocate(c)
	p.copy(c)
	p.fillTables(c)
	p.describe(c)
	p.exit(c)
	p.failures(c)
	switchTables(c, p.entry)
	c.Link(map[string]int{"program": align(len(c.Bytes), pageSize)})
	return c.Bytes
}

// allocate allocates the memory and clears it.
func (p *program) allocate(c *machinecode.Code) {
	const atMost, code = 1, 1 // AllocateMaxAddress, EfiLoaderCode
	size := p.size + pageSize + mapMemory
	c.Emit32(0xffff_ffff, 0xb8)                           // mov eax, 4 GiB - 1
	c.Emit(0x48, 0x89, 0x44, 0x24, frameValue)            // mov [rsp+frameValue], rax
	c.Emit32(atMost, 0xb9)                                // mov ecx, atMost
	c.Emit32(code, 0xba)                                  // mov edx, code
	c.Emit32(uint32((size+bigPage)/pageSize), 0x41, 0xb8) // mov r8d, pages
	c.Emit(0x4c, 0x8d, 0x4c, 0x24, frameValue)            // lea r9, [rsp+frameValue]
	c.Emit(0x41, 0xff, 0x56, serviceAllocatePages)        // call [r14+serviceAllocatePages]
	c.Emit(0x48, 0x85, 0xc0)                              // test rax, rax
	c.To("no memory", 0x0f, 0x85)                         // jnz no memory
	c.Emit(0x48, 0x8b, 0x5c, 0x24, frameValue)            // mov rbx, [rsp+frameValue]
	c.Emit32(bigPage-1, 0x48, 0x81, 0xc3)                 // add rbx, bigPage-1
	c.Emit32(-bigPage&0xffff_ffff, 0x48, 0x81, 0xe3)      // and rbx, -bigPage
	c.Emit(0x48, 0x89, 0xdf)                              // mov rdi, rbx
	c.Emit(0x31, 0xc0)                                    // xor eax, eax
	c.Emit32(uint32(size/8), 0xb9)                        // mov ecx, size/8
	c.Emit(0xf3, 0x48, 0xab)                              // rep stosq
}

// copy copies the segments. They are consecutive in the section.
func (p *program) copy(c *machinecode.Code) {
	c.To("program", 0x48, 0x8d, 0x35) // lea rsi, [rip+program]
	for _, s := range p.segments {
		c.Emit32(uint32(s.at), 0x48, 0x8d, 0xbb) // lea rdi, [rbx+at]
		c.Emit32(uint32(s.size), 0xb9)           // mov ecx, size
		c.Emit(0xf3, 0xa4)                       // rep movsb
	}
}

// fillTables fills the page tables: boot/layout.go.
func (p *program) fillTables(c *machinecode.Code) {
	const present = amd64.PagePresent | amd64.PageWrite
	const big = present | amd64.PageBig
	page := func(n uint32) uint32 { return n * pageSize }
	// entry stores an entry that refers to table n; the entry is at offset at.
	entry := func(at, n uint32) {
		c.Emit32(page(n)+present, 0x49, 0x8d, 0x87) // lea rax, [r15+table+flags]
		c.Emit32(at, 0x49, 0x89, 0x87)              // mov [r15+at], rax
	}
	c.Emit32(uint32(p.tables), 0x4c, 0x8d, 0xbb)            // lea r15, [rbx+tables]
	c.Emit32(page(boot.TableBig), 0x49, 0x8d, 0xbf)         // lea rdi, [r15+TableBig]
	c.Emit32(big, 0xb8)                                     // mov eax, flags
	c.Emit32(boot.WindowAtBoot/bigPage, 0xb9)               // mov ecx, count
	c.To("fill", 0xe8)                                      // call fill
	c.Emit32((big-boot.Load)&0xffff_ffff, 0x48, 0x8d, 0x83) // lea rax, [rbx-Load+flags]
	c.Emit32(most/bigPage, 0xb9)                            // mov ecx, count: TableImage follows
	c.To("fill", 0xe8)                                      // call fill
	for i := range uint32(boot.WindowAtBoot / bigPage / 512) {
		entry(page(boot.TableLow)+8*i, boot.TableBig+i)
	}
	entry(page(boot.TableHigh)+8*index(boot.Image, 30), boot.TableImage)
	entry(page(boot.TableRoot), boot.TableLow)
	entry(page(boot.TableRoot)+8*index(boot.Window, 39), boot.TableLow)
	entry(page(boot.TableRoot)+8*index(boot.Image, 39), boot.TableHigh)
	c.To("filled", 0xe9) // jmp filled
	c.Label("fill")
	c.Emit(0x48, 0xab)            // stosq
	c.Emit32(bigPage, 0x48, 0x05) // add rax, bigPage
	c.Emit(0xff, 0xc9)            // dec ecx
	c.To("fill", 0x0f, 0x85)      // jnz fill
	c.Emit(0xc3)                  // ret
	c.Label("filled")
}

// index returns the index of the entry for an address, in a table whose entries cover 1<<shift bytes each.
func index(va uint64, shift int) uint32 { return uint32(va >> shift & 511) }

// describe fills the structure, except for the memory map, and copies the code that switches the page tables.
func (p *program) describe(c *machinecode.Code) {
	c.Emit32(uint32(p.size), 0x48, 0x8d, 0xab)          // lea rbp, [rbx+size]
	c.Emit(0x48, 0x89, 0x5d, boot.EFIProgram)           // mov [rbp+EFIProgram], rbx
	c.Emit32(uint32(p.size+pageSize), 0x48, 0x8d, 0x83) // lea rax, [rbx+map]
	c.Emit(0x48, 0x89, 0x45, boot.EFIMap)               // mov [rbp+EFIMap], rax
	c.Emit(0x49, 0x8b, 0x4d, systemCount)               // mov rcx, [r13+systemCount]
	c.Emit(0x48, 0x83, 0xf9, boot.EFIMaxTables)         // cmp rcx, EFIMaxTables
	c.To("few", 0x0f, 0x86)                             // jbe few
	c.Emit32(boot.EFIMaxTables, 0xb9)                   // mov ecx, EFIMaxTables
	c.Label("few")                                      //
	c.Emit(0x48, 0x89, 0x4d, boot.EFITables)            // mov [rbp+EFITables], rcx
	c.Emit(0x8d, 0x0c, 0x49)                            // lea ecx, [rcx+rcx*2]: the number of words
	c.Emit(0x49, 0x8b, 0x75, systemTables)              // mov rsi, [r13+systemTables]
	c.Emit(0x48, 0x8d, 0x7d, boot.EFITable)             // lea rdi, [rbp+EFITable]
	c.Emit(0xf3, 0x48, 0xa5)                            // rep movsq
	c.To("switch", 0x48, 0x8d, 0x35)                    // lea rsi, [rip+switch]
	c.Emit32(switchAt, 0x48, 0x8d, 0xbd)                // lea rdi, [rbp+switchAt]
	c.Emit32(switchSize, 0xb9)                          // mov ecx, switchSize
	c.Emit(0xf3, 0xa4)                                  // rep movsb
}

// exit reads the memory map, ends the boot services, and jumps to the copy of the code that switches the page tables. If
// the firmware changes the map in between, the end fails, and both steps are repeated.
func (p *program) exit(c *machinecode.Code) {
	const tries = 8
	c.Emit32(tries, 0xbe)                                   // mov esi, tries
	c.Label("again")                                        //
	c.Emit32(mapMemory, 0x48, 0xc7, 0x44, 0x24, frameValue) // mov qword [rsp+frameValue], mapMemory
	c.Emit(0x48, 0x8d, 0x4c, 0x24, frameValue)              // lea rcx, [rsp+frameValue]
	c.Emit(0x48, 0x8b, 0x55, boot.EFIMap)                   // mov rdx, [rbp+EFIMap]
	c.Emit(0x4c, 0x8d, 0x44, 0x24, frameKey)                // lea r8, [rsp+frameKey]
	c.Emit(0x4c, 0x8d, 0x4c, 0x24, frameEntry)              // lea r9, [rsp+frameEntry]
	c.Emit(0x48, 0x8d, 0x44, 0x24, frameVersion)            // lea rax, [rsp+frameVersion]
	c.Emit(0x48, 0x89, 0x44, 0x24, frameFifth)              // mov [rsp+frameFifth], rax
	c.Emit(0x41, 0xff, 0x56, serviceGetMemoryMap)           // call [r14+serviceGetMemoryMap]
	c.Emit(0x48, 0x85, 0xc0)                                // test rax, rax
	c.To("no map", 0x0f, 0x85)                              // jnz no map
	c.Emit(0x4c, 0x89, 0xe1)                                // mov rcx, r12
	c.Emit(0x48, 0x8b, 0x54, 0x24, frameKey)                // mov rdx, [rsp+frameKey]
	c.Emit32(serviceExit, 0x41, 0xff, 0x96)                 // call [r14+serviceExit]
	c.Emit(0x48, 0x85, 0xc0)                                // test rax, rax
	c.To("alone", 0x0f, 0x84)                               // jz alone
	c.Emit(0xff, 0xce)                                      // dec esi
	c.To("again", 0x0f, 0x85)                               // jnz again
	c.To("no exit", 0xe9)                                   // jmp no exit
	c.Label("alone")                                        //
	c.Emit(0xfa)                                            // cli
	c.Emit(0x48, 0x8b, 0x44, 0x24, frameValue)              // mov rax, [rsp+frameValue]
	c.Emit(0x48, 0x89, 0x45, boot.EFIMapSize)               // mov [rbp+EFIMapSize], rax
	c.Emit(0x48, 0x8b, 0x44, 0x24, frameEntry)              // mov rax, [rsp+frameEntry]
	c.Emit(0x48, 0x89, 0x45, boot.EFIEntrySize)             // mov [rbp+EFIEntrySize], rax
	c.Emit32(switchAt, 0x48, 0x8d, 0x85)                    // lea rax, [rbp+switchAt]
	c.Emit(0xff, 0xe0)                                      // jmp rax
}

// failures writes a message to the firmware's console, and returns to the firmware.
func (p *program) failures(c *machinecode.Code) {
	const loadError = 1<<63 | 1
	texts := []struct{ label, text string }{{"no memory", noMemory}, {"no map", noMap}, {"no exit", noExit}}
	for _, t := range texts {
		c.Label(t.label)
		c.To(t.label+" text", 0x48, 0x8d, 0x15) // lea rdx, [rip+text]
		c.To("fail", 0xe9)                      // jmp fail
	}
	c.Label("fail")
	c.Emit(0x49, 0x8b, 0x4d, systemConsole) // mov rcx, [r13+systemConsole]
	c.Emit(0x48, 0x85, 0xc9)                // test rcx, rcx
	c.To("return", 0x0f, 0x84)              // jz return
	c.Emit(0xff, 0x51, consoleOutput)       // call [rcx+consoleOutput]
	c.Label("return")
	c.Emit64(loadError, 0x48, 0xb8) // mov rax, loadError
	// add rsp, frameSize; pop r15, r14, r13, r12, rdi, rsi, rbp, rbx; ret
	c.Emit(0x48, 0x83, 0xc4, frameSize, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5f, 0x5e, 0x5d, 0x5b, 0xc3)
	for _, t := range texts {
		c.Emit(make([]byte, len(c.Bytes)%2)...)
		c.Label(t.label + " text")
		for _, u := range append(utf16.Encode([]rune(t.text)), 0) {
			c.Emit(byte(u), byte(u>>8))
		}
	}
}

// switchSize is an upper bound of the size of the code of switchTables in bytes.
const switchSize = 256

// switchTables switches to the page tables at R15, and enters the program. RBP is the address of the structure. The code
// turns paging off in 32-bit mode, because 64-bit mode cannot change the number of levels. It runs in the allocated memory,
// which both page tables map at its physical address below 4 GiB.
func switchTables(c *machinecode.Code, entry uint64) {
	const code32 = 0x00cf_9b00_0000_ffff // a flat 32-bit code segment: present, ring 0, readable, accessed
	const selector32 = 24
	const levels4, levels5 = 1 << 5, 1 << 12 // bits of CR4: PAE, LA57
	gdt := amd64.NewGDT(0)

	c.Label("switch")
	start := len(c.Bytes)
	c.To("gdt", 0x48, 0x8d, 0x05)                // lea rax, [rip+gdt]
	c.Emit(0x48, 0x89, 0x44, 0x24, 0x12)         // mov [rsp+18], rax
	c.Emit(0x66, 0xc7, 0x44, 0x24, 0x10, 31, 0)  // mov word [rsp+16], limit
	c.Emit(0x0f, 0x01, 0x54, 0x24, 0x10)         // lgdt [rsp+16]
	c.Emit(0x0f, 0x20, 0xe0)                     // mov rax, cr4
	c.Emit32(levels4|levels5, 0x25)              // and eax, levels4|levels5: leaves out all other features
	c.Emit(0x0f, 0x22, 0xe0)                     // mov cr4, rax
	c.Emit(0x89, 0xeb)                           // mov ebx, ebp
	c.Emit(0x44, 0x89, 0xff)                     // mov edi, r15d
	c.To("in 64 bits", 0x48, 0x8d, 0x2d)         // lea rbp, [rip+in 64 bits]
	c.To("in 32 bits", 0x48, 0x8d, 0x05)         // lea rax, [rip+in 32 bits]
	c.Emit(0x6a, selector32, 0x50, 0x48, 0xcb)   // push selector32; push rax; retfq
	c.Label("in 32 bits")                        //
	c.Emit(0x0f, 0x20, 0xc0)                     // mov eax, cr0
	c.Emit32(0x7fff_ffff, 0x25)                  // and eax, ^PG
	c.Emit(0x0f, 0x22, 0xc0)                     // mov cr0, eax
	c.Emit32(levels4, 0xb8)                      // mov eax, levels4
	c.Emit(0x0f, 0x22, 0xe0)                     // mov cr4, eax
	c.Emit(0x0f, 0x22, 0xdf)                     // mov cr3, edi
	c.Emit32(amd64.MSREFER, 0xb9)                // mov ecx, EFER
	c.Emit32(amd64.EFERLongMode, 0xb8)           // mov eax, LME
	c.Emit(0x31, 0xd2)                           // xor edx, edx
	c.Emit(0x0f, 0x30)                           // wrmsr
	c.Emit(0x0f, 0x20, 0xc0)                     // mov eax, cr0
	c.Emit32(1<<31|1<<0, 0x0d)                   // or eax, PG | PE
	c.Emit(0x0f, 0x22, 0xc0)                     // mov cr0, eax
	c.Emit32(amd64.DataSelector, 0xb8)           // mov eax, data
	c.Emit(0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xd0)   // mov ds, ax; mov es, ax; mov ss, ax
	c.Emit(0x8e, 0xe0, 0x8e, 0xe8)               // mov fs, ax; mov gs, ax
	c.Emit32(pageSize, 0x8d, 0xa3)               // lea esp, [ebx+pageSize]
	c.Emit(0x6a, amd64.CodeSelector, 0x55, 0xcb) // push code; push ebp; retf
	c.Label("in 64 bits")                        //
	c.Emit32(boot.EFIMagic, 0xbe)                // mov esi, EFIMagic
	c.Emit64(entry, 0x48, 0xb8)                  // mov rax, entry
	c.Emit(0xff, 0xe0)                           // jmp rax
	c.Label("gdt")
	for _, d := range gdt[:selector32/8] {
		c.Emit64(d)
	}
	c.Emit64(code32)
	c.Emit(make([]byte, switchSize-(len(c.Bytes)-start))...)
}
