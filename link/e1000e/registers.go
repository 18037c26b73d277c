package e1000e

// Registers (82574 data sheet, chapter 10). The 82540EM has the same ones, except those marked 82574.
const (
	regControl      = 0x0000 // CTRL, Device Control
	regStatus       = 0x0008 // STATUS, Device Status
	regExtended     = 0x0018 // CTRL_EXT, Extended Device Control
	regCause        = 0x00c0 // ICR, Interrupt Cause Read; writing ones clears causes
	regThrottle     = 0x00c4 // ITR, Interrupt Throttling, of MSI and of the interrupt line
	regRaise        = 0x00c8 // ICS, Interrupt Cause Set
	regUnmask       = 0x00d0 // IMS, Interrupt Mask Set: ones unmask causes
	regMask         = 0x00d8 // IMC, Interrupt Mask Clear: ones mask causes
	regAutoClear    = 0x00dc // EIAC, Interrupt Auto Clear: causes that a message of MSI-X clears; 82574
	regAutoMask     = 0x00e0 // IAM, Interrupt Acknowledge Auto Mask; 82574
	regVectors      = 0x00e4 // IVAR, Interrupt Vector Allocation; 82574
	regVectorRate   = 0x00e8 // EITR, throttling of each MSI-X vector; 82574
	regReceive      = 0x0100 // RCTL, Receive Control
	regSend         = 0x0400 // TCTL, Transmit Control
	regGap          = 0x0410 // TIPG, Transmit Inter Packet Gap
	regReceiveRing  = 0x2800 // RDBAL, RDBAH, RDLEN: address and length of the receive ring
	regReceiveHead  = 0x2810 // RDH
	regReceiveTail  = 0x2818 // RDT
	regReceiveDelay = 0x2820 // RDTR, delay of receive interrupts
	regReceiveBatch = 0x2828 // RXDCTL, thresholds of the receive ring
	regSendRing     = 0x3800 // TDBAL, TDBAH, TDLEN
	regSendHead     = 0x3810 // TDH
	regSendTail     = 0x3818 // TDT
	regSendDelay    = 0x3820 // TIDV, delay of transmit interrupts
	regSendBatch    = 0x3828 // TXDCTL, thresholds of the transmit ring
	regArbitration  = 0x3840 // TARC0, Transmit Arbitration Count; 82574
	regMissed       = 0x4010 // MPC, Missed Packets Count; reading clears it
	regSums         = 0x5000 // RXCSUM, Receive Checksum Control
	regFilter       = 0x5008 // RFCTL, Receive Filter Control; 82574
	regMulticast    = 0x5200 // MTA, Multicast Table Array, 128 registers
	regAddressLow   = 0x5400 // RAL0, Receive Address Low
	regAddressHigh  = 0x5404 // RAH0, Receive Address High

	registersLen = 0x6000 // size of the part of the registers that the driver uses
	gone         = ^uint32(0)
)

// Bits of CTRL, STATUS and CTRL_EXT.
const (
	controlMasterDisable = 1 << 2 // GIO Master Disable; 82574
	controlSpeed         = 1 << 5 // ASDE, Auto-Speed Detection Enable
	controlLinkUp        = 1 << 6 // SLU, Set Link Up
	controlReset         = 1 << 26

	statusLinkUp = 1 << 1
	statusMaster = 1 << 19 // GIO Master Enable Status; 82574

	extendedClearPending = 1 << 31 // PBA_CLR: unmasking clears pending MSI-X messages; 82574
	extendedAutoMask     = 1 << 24 // EIAME: a message of MSI-X masks the causes of IAM; 82574
	extendedLoaded       = 1 << 28 // DRV_LOAD: a driver is in control; 82574
)

// Interrupt causes (sections 10.2.4.1 and 7.4.1).
const (
	causeSent     = 1 << 0  // TXDW, Transmit Descriptor Written Back
	causeLink     = 1 << 2  // LSC, Link Status Change
	causeLow      = 1 << 4  // RXDMT0, Receive Descriptor Minimum Threshold
	causeOverrun  = 1 << 6  // RXO, Receiver Overrun
	causeReceived = 1 << 7  // RXT0, Receiver Timer Interrupt
	causeQueueRx  = 1 << 20 // RXQ0, receive queue 0, with MSI-X
	causeQueueTx  = 1 << 22 // TXQ0, transmit queue 0, with MSI-X
	causeOther    = 1 << 24 // any other cause, with MSI-X
)

// Vectors of MSI-X, and the value of IVAR that assigns the causes to them.
const (
	vectorReceive = iota
	vectorSend
	vectorOther
	vectors

	vectorValid = 1 << 3
	vectorsAll  = (vectorReceive | vectorValid) | (vectorSend|vectorValid)<<8 | (vectorOther|vectorValid)<<16
)

// Bits of RCTL, TCTL, RXCSUM, RFCTL, TARC0, RXDCTL, TXDCTL and RAH.
const (
	receiveEnable      = 1 << 1
	receiveUnicast     = 1 << 3 // UPE: unicast frames for any address
	receiveMulticast   = 1 << 4 // MPE: all multicast frames
	receiveLong        = 1 << 5 // LPE: frames longer than 1522 bytes
	receiveBroadcast   = 1 << 15
	receiveBuffer2048  = 0 << 16
	receiveStripSum    = 1 << 26 // SECRC: without the frame check sequence
	sendEnable         = 1 << 1
	sendPad            = 1 << 3     // PSP, Pad Short Packets
	sendCollisions     = 0x0f << 4  // CT, the value that the data sheet recommends
	sendDistance       = 0x3f << 12 // COLD, the value for full duplex
	sumsIP             = 1 << 8     // IPOFL
	sumsTransport      = 1 << 9     // TUOFL
	filterISCSI        = 1 << 0     // ISCSI_DIS
	filterNFSWrite     = 1 << 6     // NFSW_DIS
	filterNFSRead      = 1 << 7     // NFSR_DIS
	filterAck          = 1 << 12    // ACK_DIS: no special interrupt for a TCP ACK
	arbitrationEnable  = 1 << 10
	batchGranularity   = 1 << 24 // the thresholds count descriptors
	batchWriteBack1    = 1 << 16 // WTHRESH: each descriptor is written back at once
	batchCount         = 1 << 22 // must be 1 in TXDCTL of the 82574
	addressValid       = 1 << 31
	gapRecommended     = 8 | 8<<10 | 6<<20 // for copper (section 10.2.6.2)
	throttleInterval   = 195               // in units of 256 ns: 20,000 interrupts per second
	longestUntagged    = 1514              // longest frame in bytes that is received without receiveLong
	receiveDescriptors = 16                // length of a descriptor in bytes, like the next one
	sendDescriptors    = 16
)

// Legacy receive descriptors (section 7.1.4): the second of two 64-bit words.
const (
	receivedDone     = 1 << 32    // DD: the card has filled the buffer
	receivedLast     = 1 << 33    // EOP: the frame ends in this buffer
	receivedNoSums   = 1 << 34    // IXSM: ignore the state of the checksums
	receivedSum      = 1 << 37    // TCPCS: the card has checked the checksum of TCP or UDP
	receivedBadSum   = 1 << 45    // TCPE: this checksum is wrong
	receivedBadFrame = 0x97 << 40 // CE, SE, SEQ, CXE, RXE: the frame was damaged on the cable
	receivedLenMask  = 0xffff
)

// Transmit descriptors (sections 7.2.10 and 7.2.11): the second of two 64-bit words.
const (
	sentData     = 1 << 20 // DTYP: a data descriptor; otherwise a context descriptor
	sentLast     = 1 << 24 // EOP of a data descriptor
	sentFCS      = 1 << 25 // IFCS of a data descriptor: append the frame check sequence
	sentTCP      = 1 << 24 // TCP of a context descriptor
	sentIPv4     = 1 << 25 // IP of a context descriptor
	sentSegment  = 1 << 26 // TSE: segmentation
	sentReport   = 1 << 27 // RS: set sentDone
	sentExtended = 1 << 29 // DEXT
	sentDone     = 1 << 32 // DD
	sentSumIP    = 1 << 40 // IXSM: insert the checksum of the IPv4 header
	sentSum      = 1 << 41 // TXSM: insert the checksum of TCP or UDP

	// Fields of a context descriptor in its second word.
	sentHeaderShift = 40
	sentMSSShift    = 48
)
