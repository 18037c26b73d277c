package nvme

// Registers of a controller (NVM Express Base Specification 1.4, section 3.1).
const (
	regCapabilities = 0x00 // 64 bits
	regMask         = 0x0c // INTMS: masks interrupts of the interrupt line
	regUnmask       = 0x10 // INTMC: unmasks them
	regConfig       = 0x14 // CC
	regStatus       = 0x1c // CSTS
	regAdminSizes   = 0x24 // AQA
	regAdminQueue   = 0x28 // ASQ, 64 bits
	regAdminDone    = 0x30 // ACQ, 64 bits
	regDoorbells    = 0x1000

	configEnable = 1 << 0
	configSizes  = 6<<16 | 4<<20 // entries of 64 and 16 bytes; pages of 4 KiB

	statusReady = 1 << 0
	statusFatal = 1 << 1
)

// capabilities is the register CAP.
type capabilities uint64

func (c capabilities) entries() int     { return int(c&0xffff) + 1 }   // entries of an I/O queue
func (c capabilities) timeout() int     { return int(c >> 24 & 0xff) } // in units of 500 ms
func (c capabilities) stride() int      { return 4 << (c >> 32 & 15) } // bytes between doorbells
func (c capabilities) commandSet() bool { return c>>37&1 != 0 }        // the NVM command set is supported
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

	forceUnit  = 1 << 30 // in dword 12 of reads and writes
	deallocate = 1 << 25 // in dword 12 of Write Zeroes
	attribute  = 1 << 2  // in dword 11 of Dataset Management: deallocate
)

// Values of CNS: the data structure that Identify returns (section 5.15).
const (
	identifyNamespace  = 0
	identifyController = 1
	identifyNamespaces = 2
	identifyLen        = 4096
)

// Offsets in the data of Identify.
const (
	atMaxTransfer = 77  // controller: MDTS, a binary logarithm of pages; 0: no limit
	atOptional    = 520 // ONCS
	atCache       = 525 // VWC

	optionalDataset = 1 << 2
	optionalZeroes  = 1 << 3

	// Offsets in the data structure Identify Namespace.
	atSize     = 0   // NSZE, in blocks
	atFeatures = 24  // NSFEAT
	atFormats  = 25  // NLBAF, number of formats minus 1
	atFormat   = 26  // FLBAS
	atWrite    = 64  // NPWG, in blocks, minus 1; valid if NSFEAT bit 4 is set
	atLBA      = 128 // LBAF0

	featuresOptimal = 1 << 4
)

// Status of a completion (section 4.6.1): status code type and status code, from the 15 bits above
// the phase.
const (
	statusMask        = 0x7ff
	statusInvalidCode = 0x001 // invalid opcode
	statusRange       = 0x080 // LBA out of range
	statusCapacity    = 0x081 // capacity exceeded
	statusReadOnly    = 0x182 // attempted write to read only range
	statusProtected   = 0x020 // namespace is write protected
)
