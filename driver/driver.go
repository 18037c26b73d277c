// Package driver defines the interface between a driver and the machine that it runs on: I/O ports, registers,
// memory for devices, and interrupts. Its sub-packages are drivers for hardware other than network cards and disks.
//
// A driver is ordinary Go code that runs in goroutines. It uses the machine only through these interfaces. In a virtual
// machine, package kernel/device implements them with instructions of ring 0. In tests, the implementation is either a
// model of a device in the same process (driver/virtio/model), or the devices of a QEMU process that runs no program
// (driver/qtest).
//
// Devices are not trusted: a driver validates every number when it reads it from a device. Every wait for a device has
// a timeout: if a device does not respond, the driver returns an error and does not hang.
package driver

// Machine is everything of a machine that a driver may use. Its methods, and the methods of the objects that it
// returns, may be called from several goroutines.
type Machine interface {
	Ports
	Memory
	Interrupts

	// Registers gives access to size bytes of device registers at a physical address. Accesses are not cached or
	// prefetched. It returns an error if the processor cannot address the registers, or if the address belongs to
	// ordinary memory.
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

// Registers is a range of little-endian device registers. Each call makes exactly one access of the given width;
// accesses are made in program order. Offsets are relative to the start of the range. The caller must check them: an
// offset that is out of range or not a multiple of the width causes a panic.
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
	// Allocate returns size bytes of zeroed, contiguous memory. Its device address is a multiple of align, which is a
	// power of two. The memory is not in the Go heap. It stays valid until Free.
	Allocate(size, align int) (Buffer, error)
	// Free releases a buffer that Allocate returned. No device may access it any more.
	Free(Buffer)

	// Segments stores the device addresses of b, which is memory of the Go program, in dst, and returns the number of
	// segments. ok is false if dst is too short, or if devices cannot access this machine's heap; the driver then
	// copies the data. The segments stay valid as long as Go code refers to b, since the garbage collector does not
	// move heap memory. (b is not on a stack, because this call makes it escape to the heap.)
	Segments(b []byte, dst []Segment) (n int, ok bool)
}

// Buffer is memory that a driver and a device share. Address is its device address. It has one owner.
type Buffer struct {
	Bytes   []byte
	Address uint64
}

// Segment is a contiguous range of memory. Address is its device address.
type Segment struct {
	Address uint64
	Size    int // size in bytes, not 0
}

// Interrupts allocates interrupts.
type Interrupts interface {
	// Message allocates an interrupt that a device raises by a memory write (MSI, MSI-X).
	Message() (Interrupt, Message, error)
	// Line connects to an interrupt line by its global system interrupt number (ACPI 6.5 section 5.2.13). A line
	// may be shared: all its users are notified.
	Line(gsi uint32, t Trigger) (Interrupt, error)
}

// Message is the memory write by which a device raises a message-signalled interrupt.
type Message struct {
	Address uint64
	Data    uint32
}

// Trigger is the trigger mode and polarity of an interrupt line.
type Trigger uint8

// Values of Trigger: how a device signals an interrupt on its line.
const (
	EdgeHigh  Trigger = iota // rising edge: ISA devices
	LevelLow                 // active low: PCI devices
	LevelHigh                // active high
)

// Interrupt is a source of interrupts for one driver. The interrupt handler only sets a bit and wakes the driver's
// goroutine, which handles the device.
type Interrupt interface {
	// C returns a channel with capacity 1. The machine sends to it after each interrupt, without blocking; the driver
	// receives. If the channel is full, an earlier notification is still pending; one check of the device then covers
	// both interrupts. The channel is never closed. A notification may be stale; on a shared line, it may be for
	// another device.
	C() <-chan struct{}
	// Done reports that the driver has handled its device, so that the device no longer asserts the line. After an
	// interrupt, a level-triggered line stays masked until all its users have called Done. For other interrupts, Done
	// does nothing.
	Done()
	// Close releases the interrupt. The driver must have stopped the device first.
	Close()
}

// Caller is an Interrupt that can call a function, which saves the switch to a goroutine that waits for C.
type Caller interface {
	// Call makes the machine call f after each interrupt, instead of sending to C. The driver still receives from C:
	// earlier interrupts may have been sent to it. f delays the interrupts of all drivers, so it must not wait for
	// anything but a lock that is held briefly. It may still be called once after Close.
	Call(f func())
}
