// Package machine joins Loam to a program that runs in a virtual machine, in ring 0:
// it brings the kernel along, finds the machine's devices, and starts package rt with
// them. It is the only package that a guest of that kind imports.
package machine

import (
	"errors"
	"fmt"
	"os"

	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/driver/virtio"
	"loam/kernel"
	"loam/kernel/device"
	"loam/link"
	"loam/link/virtionet"
	"loam/posix"
	"loam/unikernel/guest"
	"loam/unikernel/rt"
)

func init() {
	limitMemory()
	rt.StartMachine(platform{})
}

// platform is the machine, as rt.Platform.
type platform struct{}

// Open implements rt.Platform: it opens the network card of the machine, the first
// one that is found. With it the power button is heard; a program without a card
// may be alone with its goroutines, and the runtime says when all of them wait.
func (platform) Open(l guest.Link) (link.Device, error) {
	if l.Kind != guest.Card {
		return nil, fmt.Errorf("a machine has no link of kind %q", l.Kind)
	}
	firmware := openFirmware()
	d, err := findCard(firmware)
	if d == nil || err != nil {
		return nil, err
	}
	if firmware != nil {
		go hearButton(device.Open(), firmware)
	}
	return virtionet.Open(d, virtionet.Config{Name: l.Name, MTU: l.MTU, MAC: l.MAC})
}

// findCard looks wherever a machine may have one; nil if it has none.
func findCard(firmware *acpi.Tables) (*virtio.Device, error) {
	m := device.Open()
	places := virtio.Places{CommandLine: string(kernel.CommandLine())}
	if firmware != nil {
		places.DSDT = firmware.DSDT()
	}
	var why []error
	var err error
	if places.Bus, err = pci.Scan(m, firmware); err != nil {
		why = append(why, err)
	}
	devices, refused := virtio.Find(m, places)
	for _, d := range devices {
		if d.Kind() == virtio.Net {
			return d, nil
		}
	}
	return nil, errors.Join(append(why, refused...)...)
}

// openFirmware finds the tables of ACPI; nil if the machine has none.
func openFirmware() *acpi.Tables {
	rsdp := kernel.FirmwareTables()
	if rsdp == 0 {
		rsdp = acpi.FindRSDP(kernel.FirmwareMemory)
	}
	t, problem := acpi.Open(kernel.FirmwareMemory, rsdp)
	if problem != "" {
		return nil
	}
	return &t
}

// Archive implements rt.Platform.
func (platform) Archive(number int) ([]byte, error) {
	return nil, fmt.Errorf("a machine was given no archive %d", number)
}

// Executable implements rt.Platform. The program is in memory, and not as the file
// that it was.
func (platform) Executable() (string, []byte) { return os.Args[0], nil }

// Maps implements rt.Platform.
func (platform) Maps() string { return "" }

// Stream implements rt.Platform.
func (platform) Stream(number int) posix.Stream { return stream(number) }
