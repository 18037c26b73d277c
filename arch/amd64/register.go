package amd64

// Control registers, SDM volume 3, 2.5.
const (
	CR0WriteProtect = 1 << 16 // read-only pages are read-only in ring 0 too

	CR4Machine        = 1 << 6 // a machine check is an exception, not a shutdown
	CR4PageGlobal     = 1 << 7
	CR4UMIP           = 1 << 11
	CR4FSGSBase       = 1 << 16
	CR4ProcessContext = 1 << 17 // PCIDE: translations belong to a process-context identifier
	CR4XSave          = 1 << 18
	CR4SMEP           = 1 << 20
	CR4SMAP           = 1 << 21
)

// Model-specific registers, SDM volume 4, 2.1.
const (
	MSRAPICBase         = 0x1b
	MSRArchCapabilities = 0x10a // IA32_ARCH_CAPABILITIES: vulnerabilities that the processor does not have
	MSRSysenter         = 0x174 // code segment that SYSENTER loads; 0: SYSENTER causes a general-protection fault
	MSRTSCDeadline      = 0x6e0
	MSREFER             = 0xc000_0080
	MSRStar             = 0xc000_0081
	MSRLStar            = 0xc000_0082
	MSRFlagMask         = 0xc000_0084
	MSRFSBase           = 0xc000_0100
	MSRGSBase           = 0xc000_0101
	MSRTSCAux           = 0xc000_0103 // RDTSCP returns it together with the time stamp counter
	MSRKernelGS         = 0xc000_0102 // exchanged with the base of GS by SWAPGS
)

// Bits of MSRAPICBase, SDM volume 3, 11.12.1.
const (
	APICBaseX2     = 1 << 10
	APICBaseEnable = 1 << 11
)

// Bits of MSREFER, SDM volume 3, 2.2.1.
const (
	EFERSyscall   = 1 << 0
	EFERLongMode  = 1 << 8
	EFERNoExecute = 1 << 11
)

// Bits of RFLAGS, SDM volume 1, 3.4.3.
const (
	FlagFixed     = 1 << 1 // always set
	FlagTrap      = 1 << 8
	FlagInterrupt = 1 << 9
	FlagDirection = 1 << 10
	FlagIOPL      = 3 << 12
	FlagNested    = 1 << 14
	FlagResume    = 1 << 16
	FlagAlign     = 1 << 18

	// FlagsUser are the flags that a program in ring 3 may set: carry, parity, adjust, zero, sign, trap, direction,
	// overflow, nested task, resume, alignment check, identification.
	FlagsUser = 0x25_4dd5
)

// XCR0Wanted are the components of the register state that XSAVE saves, as bits of XCR0: x87, SSE, AVX, and the three
// components of AVX-512 (SDM volume 1, 13.3). Programs cannot use other components, so that the state fits into a
// thread's page.
const XCR0Wanted = 0b1110_0111

// Features are the processor features that the kernel uses.
type Features struct {
	XSave       bool
	TSCDeadline bool
	X2APIC      bool
	NoExecute   bool
	HugePages   bool // pages of 1 GiB
	SMEP, SMAP  bool
	UMIP        bool
	Machine     bool // machine-check exceptions
	FSGSBase    bool
	CPUNumber   bool // RDTSCP, which also returns the model-specific register IA32_TSC_AUX
	Random      bool
	Hypervisor  bool
	Meltdown    bool // ring 3 can read memory that is mapped for ring 0
}

// ReadFeatures reads the features by CPUID: SDM volume 2, table 3-8.
func ReadFeatures() Features {
	var f Features
	_, _, c, d := CPUID(1, 0)
	f.Machine = d>>7&1 != 0
	f.X2APIC = c>>21&1 != 0
	f.TSCDeadline = c>>24&1 != 0
	f.XSave = c>>26&1 != 0
	f.Random = c>>30&1 != 0
	f.Hypervisor = c>>31&1 != 0
	if most, _, _, _ := CPUID(0, 0); most >= 7 {
		_, b, c, _ := CPUID(7, 0)
		f.FSGSBase = b&1 != 0
		f.SMEP = b>>7&1 != 0
		f.SMAP = b>>20&1 != 0
		f.UMIP = c>>2&1 != 0
	}
	_, _, _, d = CPUID(0x8000_0001, 0)
	f.NoExecute = d>>20&1 != 0
	f.HugePages = d>>26&1 != 0
	f.CPUNumber = d>>27&1 != 0
	f.Meltdown = readMeltdown()
	return f
}
