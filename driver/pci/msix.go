package pci

import (
	"fmt"

	"loam/driver"
)

// MSIX is the MSI-X vector table of a function (PCI 3.0 section 6.8.2).
type MSIX struct {
	f     *Function
	at    int // offset of the MSI-X capability in configuration space
	size  int // number of vectors
	table driver.Registers
}

// Bits of the capability, and offsets in a table entry.
const (
	msixEnable      = 1 << 31
	msixMaskAll     = 1 << 30
	msixSizeMask    = 0x7ff // number of vectors minus one, in bits 16 to 26 of the capability's first word
	msixIndexMask   = 7     // number of the BAR with the table; the other bits are the table's offset in that BAR
	vectorLen       = 16
	vectorData      = 8
	vectorControl   = 12
	vectorMasked    = 1
	vectorAddressHi = 4
)

// MSIX masks all vectors and switches the function to MSI-X. It returns ErrNoMSIX if the function lacks the
// capability.
func (f *Function) MSIX() (*MSIX, error) {
	for _, c := range f.Capabilities() {
		if c.ID != CapabilityMSIX || c.At+8 >= configSize {
			continue
		}
		v, where := f.read(c.At), f.read(c.At+4)
		x := &MSIX{f: f, at: c.At, size: int(v>>16&msixSizeMask) + 1}
		var err error
		x.table, err = f.Registers(int(where&msixIndexMask), uint64(where&^msixIndexMask), uint64(x.size*vectorLen))
		if err != nil {
			return nil, err
		}
		for i := range x.size {
			x.table.Write32(i*vectorLen+vectorControl, vectorMasked)
		}
		f.write(x.at, v&^msixMaskAll|msixEnable)
		f.command(commandNoLine, 0)
		return x, nil
	}
	return nil, fmt.Errorf("%v: %w", f, ErrNoMSIX)
}

// Len returns the number of vectors.
func (x *MSIX) Len() int { return x.size }

// Set sets the message of vector i and unmasks it. It returns ErrVector if i is out of range.
func (x *MSIX) Set(i int, m driver.Message) error {
	if i < 0 || i >= x.size {
		return fmt.Errorf("%v: vector %d of %d: %w", x.f, i, x.size, ErrVector)
	}
	at := i * vectorLen
	x.table.Write32(at, uint32(m.Address))
	x.table.Write32(at+vectorAddressHi, uint32(m.Address>>32))
	x.table.Write32(at+vectorData, m.Data)
	x.table.Write32(at+vectorControl, 0)
	return nil
}

// Close masks all vectors and disables MSI-X for the function.
func (x *MSIX) Close() {
	for i := range x.size {
		x.table.Write32(i*vectorLen+vectorControl, vectorMasked)
	}
	x.f.write(x.at, x.f.read(x.at)&^msixEnable)
}
