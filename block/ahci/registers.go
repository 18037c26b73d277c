package ahci

// Registers of a controller (Serial ATA AHCI 1.3.1 section 3.1) and of a port (3.3).
const (
	regCapabilities = 0x00
	regControl      = 0x04 // GHC, Global HBA Control (3.1.2)
	regStatus       = 0x08 // IS, Interrupt Status (3.1.3): ports with pending interrupts
	regPorts        = 0x0c // PI, Ports Implemented (3.1.4): a bit for each port that exists

	capQueued = 1 << 30 // CAP.SNCQ: the controller supports native command queuing
	capWide   = 1 << 31 // CAP.S64A: the controller uses addresses of 64 bits

	controlReset      = 1 << 0
	controlInterrupts = 1 << 1
	controlEnable     = 1 << 31

	portsAt  = 0x100
	portLen  = 0x80
	mostPort = 32

	portList      = 0x00 // PxCLB, Command List Base Address (3.3.1), 64 bits
	portReceived  = 0x08 // PxFB, FIS Base Address (3.3.3), 64 bits
	portStatus    = 0x10 // PxIS, Interrupt Status (3.3.5)
	portEnable    = 0x14 // PxIE, Interrupt Enable (3.3.6)
	portCommand   = 0x18 // PxCMD, Command and Status (3.3.7)
	portTask      = 0x20 // PxTFD, Task File Data (3.3.8)
	portSignature = 0x24
	portLink      = 0x28 // PxSSTS, Serial ATA Status (3.3.10)
	portControl   = 0x2c // PxSCTL, Serial ATA Control (3.3.11)
	portError     = 0x30 // PxSERR, Serial ATA Error (3.3.12)
	portActive    = 0x34 // PxSACT, Serial ATA Active (3.3.13)
	portIssue     = 0x38 // PxCI, Command Issue (3.3.14)

	commandStart    = 1 << 0
	commandSpinUp   = 1 << 1
	commandPower    = 1 << 2
	commandReceive  = 1 << 4
	commandReceives = 1 << 14 // PxCMD.FR: the port receives FISes
	commandRuns     = 1 << 15 // PxCMD.CR: the port processes its command list

	taskBusy = 1<<7 | 1<<3 // PxTFD.STS: BSY (the disk is busy), DRQ (it has a data transfer to do)

	linkMask    = 15
	linkPresent = 3

	signatureDisk = 0x0000_0101

	eventLink    = 1<<22 | 1<<6  // PxIS.PRCS and PCS: the link's state (PhyRdy) or the connection has changed
	eventFatal   = 1<<29 | 1<<28 // PxIS.HBFS and HBDS: an error of the host bus
	eventFailed  = 1<<30 | 1<<27 // PxIS.TFES and IFS: a command failed (error in the task file, or on the interface)
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
	tableLen    = 1280 // length of a command table in bytes, a multiple of 128
	regionsAt   = 128  // offset of the list of memory regions in a command table
	regionLen   = 16
	mostRegions = (tableLen - regionsAt) / regionLen
	rangesLen   = 512 // bytes for the ranges of a discard, after the tables
	mostRegion  = 4 << 20
)
