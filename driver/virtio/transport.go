package virtio

import "loam/driver"

// transport is where a device's registers are: pci.go, mmio.go. Its methods are
// called by one goroutine at a time, but for notify and acknowledge.
type transport interface {
	name() string
	kind() Kind
	status() uint8
	setStatus(v uint8)
	features() Features
	setFeatures(f Features)
	// config is the configuration that the kind of device has; nil if there is
	// none. generation changes when the configuration does (section 2.5.1).
	config() driver.Registers
	generation() uint32
	// queues is how many queues there can be.
	queues() int
	// maxQueue is the most descriptors that queue i can have; 0: it is not there.
	maxQueue(i int) int
	// setQueue says where a queue is, and enables it.
	setQueue(i int, q queueMemory) error
	// notify tells the device that queue i has new chains.
	notify(i int)

	// vectors is how many interrupts by message the device can have; 0: it has a
	// line. setVector has it use message m for its configuration (i = -1) or queue i.
	vectors() int
	setVector(i, vector int, m driver.Message) error
	// line connects to the line.
	line() (driver.Interrupt, error)
	// acknowledge reads why the line was asserted, and ends that: bits of
	// interruptQueue and interruptConfig.
	acknowledge() uint32
	// stop keeps the device from memory, where a bus can do that, and reports
	// whether it did.
	stop() bool
}

// queueMemory is where the parts of a queue are for the device.
type queueMemory struct {
	size                     int
	descriptors, avail, used uint64
}

// Bits of acknowledge (section 4.1.4.5).
const (
	interruptQueue  = 1
	interruptConfig = 2
)

// Device status (section 2.1).
const (
	statusAcknowledge = 1
	statusDriver      = 2
	statusDriverOK    = 4
	statusFeaturesOK  = 8
	statusNeedsReset  = 64
	statusFailed      = 128
)
