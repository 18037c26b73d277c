package boot

// The guest's address space. The lower half is free for Linux programs, which are linked at addresses there.
// Decision 8 (docs/decisions) explains why the kernel is in the upper half.
const (
	// Window is the address at which all of physical memory is mapped.
	Window = 0xffff_8000_0000_0000

	// DynamicLow and DynamicHigh are the bounds of memory that is allocated at run time: the heap, stacks,
	// mappings.
	DynamicLow  = 0xffff_c000_0000_0000
	DynamicHigh = 0xffff_e000_0000_0000

	// Stacks is the lowest address of the area with the kernel's stacks. Addresses between two stacks are not mapped.
	Stacks = DynamicHigh

	// Entry is the lowest address of the area with the data of the entry code, which is mapped while ring 3 runs, if the CPU
	// is vulnerable to Meltdown.
	Entry = Stacks + 1<<30

	// IsolatedSize is an upper bound of the size of the code that is mapped while ring 3 runs on such a CPU.
	IsolatedSize = 3072

	// Image is the virtual address that corresponds to physical address 0 for the code and data of the program: a
	// program address minus Image is its physical address, except on UEFI (Info.Offset). The linker emits sign-extended
	// 32-bit addresses, which can reach only the uppermost 2 GiB.
	Image = 0xffff_ffff_8000_0000

	// StartPage is the physical address of the page with the code at which all CPUs except the first start. If the monitor
	// does not list it as usable memory, only one CPU starts.
	StartPage     = 0x8000
	startPageSize = 0x1000

	// Load is the physical address of the first byte of the program's file. On UEFI, firmware chooses another one:
	// Info.Offset.
	Load = 0x20_0000

	// Text is the address of the first instruction: it follows the page with the program's headers.
	Text = Image + Load + 0x1000
)

// Indices of the page tables that the entry code builds, in the pages after the program. They map the lowest 4 GiB of
// physical memory, in big pages, at 0 and at Window, and 1 GiB at Image.
const (
	TableRoot    = iota         // level 4, the root
	TableLow                    // level 3, for 0 and Window
	TableHigh                   // level 3, for Image
	TableBig                    // four page directories (level 2), which map 4 GiB in pages of 2 MiB
	TableImage   = TableBig + 4 // page directory for Image; used only by the loader of UEFI applications
	TablePages   = TableImage + 1
	WindowAtBoot = 4 << 30 // bytes of physical memory that are mapped at Window at the start
)

// I/O ports between the loam command and the kernel: see kernel/control.go.
const (
	PortOutput  = 0x520 // output of the program to file descriptor 1
	PortErrors  = 0x521 // output of the program to file descriptor 2
	PortControl = 0x522 // the guest writes the exit status of the program
	PortTime    = 0x523 // requests the wall clock time: kernel/wall.go
)
