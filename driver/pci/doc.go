// Package pci finds devices on the PCI bus and gives access to their registers:
// PCI Local Bus Specification 3.0 ("PCI 3.0"), PCI-to-PCI Bridge Architecture
// Specification 1.2 ("bridge 1.2"), PCI Express Base Specification 5.0.
//
// Read in this order: config.go (configuration space), scan.go (which functions
// there are), bar.go (where their registers are), capability.go, msix.go.
//
// Firmware has usually given every device its addresses; where it did not, or
// where there is no firmware, Assign does. A function belongs to one driver, which
// calls its methods from one goroutine.
package pci

import "errors"

// Errors. They are wrapped with the function that they are about.
var (
	ErrNoBAR  = errors.New("pci: the device has no such registers")
	ErrNoMSIX = errors.New("pci: the device has no MSI-X")
	ErrVector = errors.New("pci: the device has no such MSI-X vector")
	ErrSpace  = errors.New("pci: no address space is left for the device")
)
