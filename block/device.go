package block

import "time"

// Info describes a device. It does not change while the device is open.
type Info struct {
	Name string // shown to users: "memory", "nvme0n1"

	LogicalSector  int // unit of offsets and lengths in bytes: a power of two, 512 at least
	PhysicalSector int // unit that the device writes without reading first: a power of two, LogicalSector at least

	MaxTransfer int   // maximum bytes of one Read or Write: a multiple of LogicalSector, MinTransfer at least
	MaxSegments int   // maximum pieces of Data in one request: 1 at least
	MaxDiscard  int64 // maximum bytes of one Discard; 0: not supported
	MaxZeroes   int64 // maximum bytes of one WriteZeroes; 0: not supported
	MemoryAlign int   // a power of two: memory that starts at a multiple of it is not copied; 1: any memory
	Depth       int   // number of requests that the device processes at the same time, over all queues

	ReadOnly bool // writes fail with ErrReadOnly
	Volatile bool // completed writes need a Flush to be durable
	FUA      bool // FUA costs less than a Flush

	// Timeout is the maximum time that the device itself may take for one request. A device that
	// exceeds it is shut down: see ErrTimeout. 0: the operating system of the host limits the time.
	Timeout time.Duration
}

// MinTransfer is the lower limit of Info.MaxTransfer in bytes: every device accepts a memory page
// in one request.
const MinTransfer = 4096

// Device is a block device. Its methods may be called from several goroutines.
type Device interface {
	// Info describes the device.
	Info() Info
	// Size returns the capacity in bytes, a multiple of LogicalSector. It changes
	// when the device is resized. Requests beyond it fail with ErrRange.
	Size() int64
	// Resized returns a channel of capacity 1. The device sends, without blocking, after Size has changed. If
	// the channel is full, the user has not received the earlier notice yet, and will see this change too.
	// The user of the device receives. It is never closed, and nil if Size cannot change.
	Resized() <-chan struct{}

	// Queues returns the number of queues, at least 1. Requests on different queues
	// do not contend for locks. A user with several CPUs picks one queue for each.
	Queues() int
	// Submit passes requests to a queue, 0 <= queue < Queues(). It neither blocks nor keeps rs.
	// Requests may come back before Submit returns. They are started in order, and complete in any
	// order. A request that Check rejects comes back with that error; the others are carried out.
	Submit(queue int, rs []*Request)

	// Stats returns the counters of all queues.
	Stats() Stats
	// Close stops the device. Requests in flight come back, with ErrClosed or with
	// their result, before Close returns. Later requests come back with ErrClosed.
	// Close does not flush. It may be called more than once, and returns the same.
	Close() error
}
