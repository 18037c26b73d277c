package virtio

import "loam/driver"

// transport gives access to a device's registers; it is implemented in pci.go and mmio.go. Only one goroutine at a time
// may call its methods, except notify and acknowledge.
type transport interface {
	name() string
	kind() Kind
	status() uint8
	setStatus(v uint8)
	features() Features
	setFeatures(f Features)
	// config returns the type-specific configuration; nil if there is none. generation changes whenever the
	// configuration changes (virtio 1.2 section 2.5.1).
	config() driver.Registers
	generation() uint32
	// queues returns the maximum number of queues.
	queues() int
	// maxQueue returns the maximum number of descriptors of queue i; 0: the queue does not exist.
	maxQueue(i int) int
	// setQueue sets the addresses of a queue and enables it.
	setQueue(i int, q queueMemory) error
	// notify notifies the device of new chains in queue i.
	notify(i int)

	// vectors returns the number of MSI-X vectors of the device; 0 means that it has an interrupt line. setVector
	// assigns message m to a vector, and the vector to queue i or, if i is -1, to changes of the configuration.
	vectors() int
	setVector(i, vector int, m driver.Message) error
	// line connects to the device's interrupt line.
	line() (driver.Interrupt, error)
	// acknowledge returns the reasons for an interrupt on the line, and clears them: bits of interruptQueue and
	// interruptConfig.
	acknowledge() uint32
	// stop blocks the device's accesses to memory if its bus supports that. It reports whether it has blocked them.
	stop() bool
}

// queueMemory holds the size of a queue and the device addresses of its parts.
type queueMemory struct {
	size                     int
	descriptors, avail, used uint64
}

// Bits that the method acknowledge returns: why the device interrupted (virtio 1.2 section 4.1.4.5).
const (
	interruptQueue  = 1
	interruptConfig = 2
)

// Device status (virtio 1.2 section 2.1).
const (
	statusAcknowledge = 1
	statusDriver      = 2
	statusDriverOK    = 4
	statusFeaturesOK  = 8
	statusNeedsReset  = 64
	statusFailed      = 128
)
