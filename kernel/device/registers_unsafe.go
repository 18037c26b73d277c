package device

import (
	"unsafe"

	"loam/driver"
	"loam/kernel"
)

// registers is a window onto the registers of a device. Each access is one
// instruction, which is neither split, nor joined with others, nor left out: the
// compiler sees through no function that is not inlined. Stores are not those of
// sync/atomic, which are exchanges: emulators stop all CPUs for an exchange with a
// device, and QEMU 7.2 has failed in the middle of one.
type registers struct {
	base uintptr
	size int
}

// Registers shows registers at a physical address.
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

// at is where a register is.
func (r *registers) at(offset, width int) unsafe.Pointer {
	if offset < 0 || offset%width != 0 || offset > r.size-width {
		panic("device: no such register")
	}
	// Safety: the offset has just been checked, and the registers stay mapped.
	addr := r.base + uintptr(offset)
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

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
