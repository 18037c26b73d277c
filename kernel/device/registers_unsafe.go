package device

import (
	"unsafe"

	"loam/driver"
	"loam/kernel"
)

// registers maps the registers of a device. Each access is exactly one instruction: the methods are not inlined, so
// the compiler neither splits nor merges nor removes an access. Stores do not use sync/atomic, whose stores are
// exchanges. Emulators stop all CPUs for an exchange with a device, and QEMU 7.2 has crashed during one.
type registers struct {
	base uintptr
	size int
}

// Registers maps size bytes of registers at a physical address. It returns ErrRegisters for an invalid range and
// for ordinary memory. The mapping is permanent.
func (m *Machine) Registers(address uint64, size int) (driver.Registers, error) {
	if size <= 0 {
		return nil, ErrRegisters
	}
	base, ok := call(kernel.CallMapRegisters, uintptr(address), uintptr(size))
	if !ok {
		return nil, ErrRegisters
	}
	return &registers{base, size}, nil
}

// at returns the address of a register. It panics if the offset is unaligned or out of range.
func (r *registers) at(offset, width int) unsafe.Pointer {
	if offset < 0 || offset%width != 0 || offset > r.size-width {
		panic("device: no such register")
	}
	// Safety: the offset has just been checked, and the registers stay mapped.
	addr := r.base + uintptr(offset)
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// Size and the methods below implement driver.Registers.
func (r *registers) Size() int { return r.size }

//go:noinline
func (r *registers) Read8(at int) uint8 { return *(*uint8)(r.at(at, 1)) }

//go:noinline
func (r *registers) Read16(at int) uint16 { return *(*uint16)(r.at(at, 2)) }

//go:noinline
func (r *registers) Read32(at int) uint32 { return *(*uint32)(r.at(at, 4)) }

//go:noinline
func (r *registers) Read64(at int) uint64 { return *(*uint64)(r.at(at, 8)) }

//go:noinline
func (r *registers) Write8(at int, v uint8) { *(*uint8)(r.at(at, 1)) = v }

//go:noinline
func (r *registers) Write16(at int, v uint16) { *(*uint16)(r.at(at, 2)) = v }

//go:noinline
func (r *registers) Write32(at int, v uint32) { *(*uint32)(r.at(at, 4)) = v }

//go:noinline
func (r *registers) Write64(at int, v uint64) { *(*uint64)(r.at(at, 8)) = v }
