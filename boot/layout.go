package boot

// Where things are in the guest's address space. The lower half is free: it is
// for Linux programs, which expect to be linked there. See docs/decisions.
const (
	// Window shows all of physical memory.
	Window = 0xffff_8000_0000_0000

	// DynamicLow and DynamicHigh bound what is handed out at run time: the heap,
	// stacks, mappings.
	DynamicLow  = 0xffff_c000_0000_0000
	DynamicHigh = 0xffff_e000_0000_0000

	// Stacks is where the kernel's own stacks are, with nothing between them.
	Stacks = DynamicHigh

	// Image is where physical address 0 would be in the part of the address space
	// where the program is linked. Its code can reach 2 GiB by 32-bit addresses
	// that are extended with their sign, as the linker makes them.
	Image = 0xffff_ffff_8000_0000

	// Load is the physical address of the first byte of the program's file.
	Load = 0x20_0000

	// Text is where the linker puts the first instruction: behind the page of
	// headers.
	Text = Image + Load + 0x1000
)

// The page tables that the entry code makes: the lowest 4 GiB of physical memory,
// in big pages, at 0 and at Window, and the lowest 1 GiB at Image. They stand in
// the pages behind the program.
const (
	TableRoot    = iota // level 4
	TableLow            // level 3, for 0 and Window
	TableHigh           // level 3, for Image
	TableBig            // level 2, four of them
	TablePages   = TableBig + 4
	WindowAtBoot = 4 << 30 // how much of physical memory Window shows
)

// The ports between the loam command and the kernel: see kernel/control.go.
const (
	PortOutput  = 0x520 // what the program writes to descriptor 1
	PortErrors  = 0x521 // and to descriptor 2
	PortControl = 0x522 // the exit status
	PortTime    = 0x523 // a question for the time of the day: kernel/wall.go
)
