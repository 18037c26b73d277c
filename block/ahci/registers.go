package ahci

// Registers of a controller (Serial ATA AHCI 1.3.1 section 3.1) and of a port (3.3).
const (
	regCapabilities = 0x00
	regControl      = 0x04 // GHC
	regStatus       = 0x08 // IS: ports with pending interrupts
	regPorts        = 0x0c // PI: implemented ports

	capQueued = 1 << 30 // native command queuing
	capWide   = 1 << 31 // addresses of 64 bits

	controlReset      = 1 << 0
	controlInterrupts = 1 << 1
	controlEnable     = 1 << 31

	portsAt  = 0x100
	portLen  = 0x80
	mostPort = 32

	portList      = 0x00 // 64 bits
	portReceived  = 0x08 // 64 bits
	portStatus    = 0x10 // IS
	portEnable    = 0x14 // IE
	portCommand   = 0x18 // CMD
	portTask      = 0x20 // TFD
	portSignature = 0x24
	portLink      = 0x28 // SSTS
	portControl   = 0x2c // SCTL
	portError     = 0x30 // SERR
	portActive    = 0x34 // SACT
	portIssue     = 0x38 // CI

	commandStart    = 1 << 0
	commandSpinUp   = 1 << 1
	commandPower    = 1 << 2
	commandReceive  = 1 << 4
	commandReceives = 1 << 14 // FR
	commandRuns     = 1 << 15 // CR

	taskBusy = 1<<7 | 1<<3 // BSY, DRQ

	linkMask    = 15
	linkPresent = 3

	signatureDisk = 0x0000_0101

	eventLink    = 1<<22 | 1<<6  // PhyRdy or the connection has changed
	eventFatal   = 1<<29 | 1<<28 // error of the host bus
	eventFailed  = 1<<30 | 1<<27 // error of a command: task file, interface
	eventsWanted = 0x2f | eventLink | eventFatal | eventFailed
)

// ATA commands (ACS-3 section 7).
const (
	ataReadDMA      = 0x25
	ataWriteDMA     = 0x35
	ataReadQueued   = 0x60
	ataWriteQueued  = 0x61
	ataDataset      = 0x06
	ataFlush        = 0xea
	ataIdentify     = 0xec
	datasetTrim     = 1
	deviceLBA       = 0x40
	deviceForceUnit = 0x80
)

// Memory of a port, in one piece: the command list, the area for received FISes, and a
// command table for each slot (section 4.2).
const (
	listLen     = 1024
	headerLen   = 32
	receivedAt  = listLen
	receivedLen = 256
	tablesAt    = 2048
	tableLen    = 1280 // a multiple of 128
	regionsAt   = 128  // offset in a table
	regionLen   = 16
	mostRegions = (tableLen - regionsAt) / regionLen
	rangesLen   = 512 // bytes for the ranges of a discard, after the tables
	mostRegion  = 4 << 20
)
