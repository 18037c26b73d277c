// Package driver is the contract between a driver and the machine that it runs
// on: ports, registers, memory that devices can reach, and interrupts. Below it
// are the drivers of hardware that is not a link.
//
// A driver is ordinary Go in goroutines, and knows the machine only by these
// interfaces. In a virtual machine the kernel implements them with instructions
// of ring 0; tests do it with a model of a device in the same process, or with
// the devices of a QEMU that runs no program (driver/qtest).
//
// What a device says is not to be believed: a driver checks every number that it
// reads from one, once, where it comes in. And it does not wait for a device
// without a bound: a device that does not answer is an error, never a hang.
package driver

// Machine is all that a driver may ask for. Its methods, and those of what it
// hands out, may be called from several goroutines.
type Machine interface {
	Ports
	Memory
	Interrupts

	// Registers gives access to size bytes of device registers at a physical
	// address. They are neither cached nor read ahead. It fails if the processor
	// cannot address them, or if ordinary memory is there.
	Registers(address uint64, size int) (Registers, error)
}

// Ports is the I/O address space of the processor. A port that no device answers
// to reads as ones.
type Ports interface {
	In8(port uint16) uint8
	In16(port uint16) uint16
	In32(port uint16) uint32
	Out8(port uint16, v uint8)
	Out16(port uint16, v uint16)
	Out32(port uint16, v uint32)
}

// Registers is a window onto the registers of a device, little-endian. Each call
// is one access of that width, done in the order of the program. Offsets count
// from the begin of the window, are multiples of the width, and lie inside: the
// caller has checked that, and a wrong one panics.
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

// Memory is what devices can read and write by themselves.
type Memory interface {
	// Allocate returns size bytes of zeros in one piece, at a device address that
	// is a multiple of align, a power of two. They lie outside of the Go heap and
	// stay until they are given to Free.
	Allocate(size, align int) (Buffer, error)
	// Free takes a buffer back that Allocate returned. No device may know of it
	// any more.
	Free(Buffer)

	// Segments says where b, memory of the Go program, is for a device. It fills dst
	// from the front and returns how many pieces there are. ok is false if dst is
	// too short, or if devices cannot reach the heap of this machine: the driver
	// then copies. The pieces are right for as long as Go refers to b: the collector
	// moves nothing of the heap. (b is not on a stack: it escapes by this call.)
	Segments(b []byte, dst []Segment) (n int, ok bool)
}

// Buffer is memory that has one owner and a device address.
type Buffer struct {
	Bytes   []byte
	Address uint64
}

// Segment is a piece of memory as a device sees it.
type Segment struct {
	Address uint64
	Size    int // in bytes, not 0
}

// Interrupts hands out interrupts.
type Interrupts interface {
	// Message allots an interrupt that a device raises by writing (MSI, MSI-X).
	Message() (Interrupt, Message, error)
	// Line connects to a line by its global system interrupt number (ACPI 6.5
	// section 5.2.13). A line may be shared: all who connected to it are woken.
	Line(gsi uint32, t Trigger) (Interrupt, error)
}

// Message is what a device writes to raise an interrupt.
type Message struct {
	Address uint64
	Data    uint32
}

// Trigger says how a line asks for attention.
type Trigger uint8

// Triggers.
const (
	EdgeHigh  Trigger = iota // by rising: what ISA devices do
	LevelLow                 // for as long as it is low: what PCI devices do
	LevelHigh                // for as long as it is high
)

// Interrupt is one source of interrupts, for one driver. The handler in the
// processor's interrupt does nothing but set a bit and wake; the driver's
// goroutine does the work.
type Interrupt interface {
	// C has one place. The machine sends, without blocking, after the interrupt
	// has come (full: it rings already, and the driver will look once for both);
	// the driver receives. It is never closed. A ring may be stale or, on a shared
	// line, meant for somebody else.
	C() <-chan struct{}
	// Done says that the driver has seen to its device, whose line is then no
	// longer asserted on its behalf. A level-triggered line stays masked from the
	// interrupt until all who share it have said so; for others it does nothing.
	Done()
	// Close gives the interrupt back. The device must have been told to stop.
	Close()
}
