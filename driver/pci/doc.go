// Package pci finds devices on the PCI bus and gives access to their registers: PCI Local Bus Specification 3.0
// ("PCI 3.0"), PCI-to-PCI Bridge Architecture Specification 1.2 ("bridge 1.2"), PCI Express Base Specification 5.0.
//
// Reading order: config.go (configuration space), scan.go (finding functions), bar.go (location of registers),
// capability.go, msix.go, msi.go.
//
// Firmware usually assigns addresses to all devices. If it does not, or if there is no firmware, Assign does. A
// function belongs to one driver, which calls its methods from one goroutine at a time.
package pci

import "errors"

// Errors, wrapped with the name of the function.
var (
	ErrNoBAR  = errors.New("pci: the device has no such registers")
	ErrNoMSIX = errors.New("pci: the device has no MSI-X")
	ErrNoMSI  = errors.New("pci: it has no interrupts by message")
	ErrVector = errors.New("pci: the device has no such MSI-X vector")
	ErrSpace  = errors.New("pci: no address space is left for the device")
)
