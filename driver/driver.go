// Package driver defines the interface between a driver and the machine that it runs on: I/O ports, registers,
// memory for devices, and interrupts. Its sub-packages are drivers for hardware other than network cards and disks.
//
// A driver is ordinary Go in goroutines and uses the machine only by these interfaces. In a virtual machine,
// package kernel/device implements them with instructions of ring 0. In tests, the implementation is a model of a
// device in the same process (driver/virtio/model), or the devices of a QEMU process that runs no program
// (driver/qtest).
//
// Devices are not trusted: a driver validates every number that it reads from a device, once, where it is read.
// Every wait for a device has a timeout: a device that does not respond is an error, never a hang.
package driver

// Machine is everything that a driver may use. Its methods, and the methods of the objects that it returns, may be
// called from several goroutines.
type Machine interface {
	Ports
	Memory
	Interrupts

	// Registers gives access to size bytes of device registers at a physical address. Accesses are not cached or
	// prefetched. It fails if the processor cannot address the registers, or if ordinary memory is there.
	Registers(address uint64, size int) (Registers, error)
}

// Ports is the I/O address space of the processor. Reading a port without a device returns all ones.
type Ports interface {
	In8(port uint16) uint8
	In16(port uint16) uint16
	In32(port uint16) uint32
	Out8(port uint16, v uint8)
	Out16(port uint16, v uint16)
	Out32(port uint16, v uint32)
}

// Registers is a range of little-endian device registers. Each call is one access of its width, in program order.
// Offsets are relative to the start of the range. An offset that is out of range or not a multiple of the width
// panics: the caller must check it first.
type Registers interface {
	Size() int // in bytes
	Read8(at int) uint8
	Read16(at int) uint16
	Read32(at int) uint32
	Read64(at int) uint64
	Write8(at int, v uint8)
	Write16(at int, v uint16)
	Write32(at int, v uint32)
	Write64(at int, v uint64)
}

// Memory provides memory that devices can access (DMA).
type Memory interface {
	// Allocate returns size bytes of zeroed, contiguous memory, at a device address that is a multiple of align, a
	// power of two. The memory is outside of the Go heap and stays valid until Free.
	Allocate(size, align int) (Buffer, error)
	// Free releases a buffer that Allocate returned. No device may access it any more.
	Free(Buffer)

	// Segments stores the device addresses of b, memory of the Go program, in dst, and returns the number of
	// segments. ok is false if dst is too short, or if devices cannot access this machine's heap; the driver then
	// copies the data. The segments stay valid while Go refers to b, since the garbage collector does not move heap
	// memory. (b is not on a stack: it escapes by this call.)
	Segments(b []byte, dst []Segment) (n int, ok bool)
}

// Buffer is memory with a single owner and a device address.
type Buffer struct {
	Bytes   []byte
	Address uint64
}

// Segment is a contiguous piece of memory, by device address.
type Segment struct {
	Address uint64
	Size    int // in bytes, not 0
}

// Interrupts allocates interrupts.
type Interrupts interface {
	// Message allocates an interrupt that a device raises by a memory write (MSI, MSI-X).
	Message() (Interrupt, Message, error)
	// Line connects to an interrupt line by its global system interrupt number (ACPI 6.5 section 5.2.13). A line
	// may be shared: all its users are notified.
	Line(gsi uint32, t Trigger) (Interrupt, error)
}

// Message is the memory write by which a device raises an interrupt.
type Message struct {
	Address uint64
	Data    uint32
}

// Trigger is the trigger mode and polarity of an interrupt line.
type Trigger uint8

// Values of Trigger.
const (
	EdgeHigh  Trigger = iota // rising edge: ISA devices
	LevelLow                 // active low: PCI devices
	LevelHigh                // active high
)

// Interrupt is a source of interrupts for one driver. The interrupt handler itself only sets a bit and wakes the
// driver's goroutine, which does the work.
type Interrupt interface {
	// C returns a channel with capacity 1. The machine sends after each interrupt, without blocking; the driver
	// receives. If the channel is full, a notification is already pending, and one check of the device covers both.
	// The channel is never closed. A notification may be stale or, on a shared line, for another device.
	C() <-chan struct{}
	// Done reports that the driver has served its device, which no longer asserts the line. A level-triggered line
	// stays masked from the interrupt until all its users have called Done. For other interrupts Done does nothing.
	Done()
	// Close releases the interrupt. The driver must have stopped the device first.
	Close()
}
