package pci

import (
	"fmt"

	"loam/driver"
)

// CapabilityMSI is the ID of the MSI capability: it contains the address and the data of one message-signalled
// interrupt (PCI 3.0 section 6.8.1).
const CapabilityMSI = 0x05

// Bits of the first register of the MSI capability.
const (
	msiEnable   = 1 << 16
	msiMultiple = 7 << 20 // log2 of the number of enabled messages; 0 means one message
	msiWide     = 1 << 23 // the message address has 64 bits
)

// MSI makes the function send message m instead of asserting its interrupt line. It returns ErrNoMSI if the function
// lacks the capability, or if its address register is too narrow for m.
func (f *Function) MSI(m driver.Message) error {
	at, ok := f.msi()
	if !ok {
		return fmt.Errorf("%v: %w", f, ErrNoMSI)
	}
	v := f.read(at)
	f.write(at+4, uint32(m.Address))
	data := at + 8
	if v&msiWide != 0 {
		f.write(at+8, uint32(m.Address>>32))
		data = at + 12
	} else if m.Address>>32 != 0 {
		return fmt.Errorf("%v: the message is for an address above 4 GiB: %w", f, ErrNoMSI)
	}
	f.write(data, m.Data)
	f.write(at, v&^msiMultiple|msiEnable)
	f.command(commandNoLine, 0)
	return nil
}

// CloseMSI disables the function's message-signalled interrupts.
func (f *Function) CloseMSI() {
	if at, ok := f.msi(); ok {
		f.write(at, f.read(at)&^msiEnable)
	}
}

// msi returns the offset of the MSI capability; false if the function has none.
func (f *Function) msi() (at int, ok bool) {
	for _, c := range f.Capabilities() {
		if c.ID == CapabilityMSI && c.At+16 <= configSize {
			return c.At, true
		}
	}
	return 0, false
}
