package model

import (
	"errors"
	"fmt"

	"loam/driver"
)

// window is a range of physical addresses that contains the registers of a device.
type window struct {
	address uint64
	size    int
	device  responder
}

// responder implements the registers of a device. at is an offset in the device's window; width is in bytes.
type responder interface {
	read(at, width int) uint64
	write(at, width int, v uint64)
}

var errNothing = errors.New("model: nothing is there")

// Registers implements driver.Machine.
func (m *Machine) Registers(address uint64, size int) (driver.Registers, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.windows {
		if address >= w.address && address-w.address <= uint64(w.size) && size > 0 && size <= w.size-int(address-w.address) {
			return &registers{w.device, int(address - w.address), size}, nil
		}
	}
	return nil, errNothing
}

// registers gives a driver access to a window.
type registers struct {
	device responder
	from   int
	size   int
}

func (r *registers) get(at, width int) uint64    { return r.device.read(r.at(at, width), width) }
func (r *registers) put(at, width int, v uint64) { r.device.write(r.at(at, width), width, v) }

// at checks that an access is aligned and in range, and returns its offset in the window.
func (r *registers) at(at, width int) int {
	if at < 0 || at%width != 0 || at > r.size-width {
		panic(fmt.Sprintf("model: access of %d bytes at %#x of %#x", width, at, r.size))
	}
	return r.from + at
}

func (r *registers) Size() int                { return r.size }
func (r *registers) Read8(at int) uint8       { return uint8(r.get(at, 1)) }
func (r *registers) Read16(at int) uint16     { return uint16(r.get(at, 2)) }
func (r *registers) Read32(at int) uint32     { return uint32(r.get(at, 4)) }
func (r *registers) Read64(at int) uint64     { return r.get(at, 8) }
func (r *registers) Write8(at int, v uint8)   { r.put(at, 1, uint64(v)) }
func (r *registers) Write16(at int, v uint16) { r.put(at, 2, uint64(v)) }
func (r *registers) Write32(at int, v uint32) { r.put(at, 4, uint64(v)) }
func (r *registers) Write64(at int, v uint64) { r.put(at, 8, v) }
