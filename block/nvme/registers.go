package nvme

// Registers of a controller (NVM Express Base Specification 1.4, section 3.1).
const (
	regCapabilities = 0x00 // CAP, Controller Capabilities (3.1.1), 64 bits
	regMask         = 0x0c // INTMS, Interrupt Mask Set (3.1.3): masks interrupts of the interrupt line
	regUnmask       = 0x10 // INTMC, Interrupt Mask Clear (3.1.4): unmasks interrupts of the interrupt line
	regConfig       = 0x14 // CC, Controller Configuration (3.1.5)
	regStatus       = 0x1c // CSTS, Controller Status (3.1.6)
	regAdminSizes   = 0x24 // AQA, Admin Queue Attributes (3.1.8)
	regAdminQueue   = 0x28 // ASQ, Admin Submission Queue Base Address (3.1.9), 64 bits
	regAdminDone    = 0x30 // ACQ, Admin Completion Queue Base Address (3.1.10), 64 bits
	regDoorbells    = 0x1000

	configEnable = 1 << 0
	configSizes  = 6<<16 | 4<<20 // entries of 64 and 16 bytes; pages of 4 KiB

	statusReady = 1 << 0
	statusFatal = 1 << 1
)

// capabilities is the value of the register CAP (3.1.1).
type capabilities uint64

func (c capabilities) entries() int { return int(c&0xffff) + 1 } // MQES: maximum entries of an I/O queue
// TO: the longest time for a start or stop, in units of 500 ms
func (c capabilities) timeout() int     { return int(c >> 24 & 0xff) }
func (c capabilities) stride() int      { return 4 << (c >> 32 & 15) } // DSTRD: bytes between doorbells
func (c capabilities) commandSet() bool { return c>>37&1 != 0 }        // CSS: the NVM command set is supported
func (c capabilities) minPage() int     { return 4096 << (c >> 48 & 15) }

// Admin commands (section 5) and I/O commands (NVM command set, section 6).
const (
	adminCreateSubmission = 0x01
	adminCreateCompletion = 0x05
	adminIdentify         = 0x06
	adminSetFeatures      = 0x09

	featureQueues = 0x07

	opFlush       = 0x00
	opWrite       = 0x01
	opRead        = 0x02
	opWriteZeroes = 0x08
	opDataset     = 0x09

	forceUnit  = 1 << 30 // FUA, bit in dword 12 of reads and writes: the data is durable when the command completes
	deallocate = 1 << 25 // DEAC, bit in dword 12 of Write Zeroes: the blocks may be deallocated
	attribute  = 1 << 2  // AD, bit in dword 11 of Dataset Management: the ranges are deallocated
)

// Values of CNS: the data structure that Identify returns (section 5.15).
const (
	identifyNamespace  = 0
	identifyController = 1
	identifyNamespaces = 2
	identifyLen        = 4096
)

// Offsets in the data that the command Identify returns.
const (
	atMaxTransfer = 77  // controller: MDTS, a binary logarithm of pages; 0: no limit
	atOptional    = 520 // ONCS, Optional NVM Command Support
	atCache       = 525 // VWC, Volatile Write Cache

	optionalDataset = 1 << 2
	optionalZeroes  = 1 << 3

	// Offsets in the data structure Identify Namespace.
	atSize     = 0   // NSZE, Namespace Size, in blocks
	atFeatures = 24  // NSFEAT, Namespace Features
	atFormats  = 25  // NLBAF, Number of LBA Formats, minus 1
	atFormat   = 26  // FLBAS, Formatted LBA Size: the number of the format in use
	atWrite    = 64  // NPWG, in blocks, minus 1; valid if NSFEAT bit 4 is set
	atLBA      = 128 // LBAF0, the first LBA format; the others follow it

	featuresOptimal = 1 << 4
)

// Status of a completion (section 4.6.1): status code type and status code, from the 15 bits above
// the phase.
const (
	statusMask        = 0x7ff
	statusInvalidCode = 0x001 // the opcode of the command is invalid
	statusRange       = 0x080 // a block address is out of range
	statusCapacity    = 0x081 // the capacity of the namespace is exceeded
	statusReadOnly    = 0x182 // a write was attempted to a range that is read-only
	statusProtected   = 0x020 // the namespace is write-protected
)
