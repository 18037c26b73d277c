package boot

// The guest's address space. The lower half is free: it is for Linux programs, which are linked at addresses there.
// See docs/decisions.
const (
	// Window is where all of physical memory is mapped.
	Window = 0xffff_8000_0000_0000

	// DynamicLow and DynamicHigh are the bounds of memory that is allocated at run time: the heap, stacks,
	// mappings.
	DynamicLow  = 0xffff_c000_0000_0000
	DynamicHigh = 0xffff_e000_0000_0000

	// Stacks is where the kernel's stacks start. The space between them is unmapped.
	Stacks = DynamicHigh

	// Image is the address at which physical address 0 would be in the part of the address space where the program
	// is linked. The linker emits sign-extended 32-bit addresses, which can reach the uppermost 2 GiB.
	Image = 0xffff_ffff_8000_0000

	// Load is the physical address of the first byte of the program's file.
	Load = 0x20_0000

	// Text is the address of the first instruction: after the page of headers.
	Text = Image + Load + 0x1000
)

// The page tables that the entry code builds. They map the lowest 4 GiB of physical memory, in big pages, at 0 and
// at Window, and the lowest 1 GiB at Image. They are in the pages after the program.
const (
	TableRoot    = iota // level 4
	TableLow            // level 3, for 0 and Window
	TableHigh           // level 3, for Image
	TableBig            // page directories (level 2): four, which map 4 GiB with pages of 2 MiB
	TablePages   = TableBig + 4
	WindowAtBoot = 4 << 30 // bytes of physical memory that Window maps at the start
)

// I/O ports between the loam command and the kernel: see kernel/control.go.
const (
	PortOutput  = 0x520 // output of the program to file descriptor 1
	PortErrors  = 0x521 // output of the program to file descriptor 2
	PortControl = 0x522 // the exit status
	PortTime    = 0x523 // requests the wall clock time: kernel/wall.go
)
