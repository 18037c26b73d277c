// Package machine joins Loam to a program that runs in a virtual machine, in ring 0:
// it brings the kernel along, finds the machine's devices, and starts package rt with
// them. It is the only package that a guest of that kind imports.
package machine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"

	"loam/boot"
	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/driver/virtio"
	"loam/kernel"
	"loam/kernel/device"
	"loam/link"
	"loam/link/virtionet"
	"loam/unikernel/complaint"
	"loam/unikernel/guest"
	"loam/unikernel/rt"
)

func init() {
	limitMemory()
	seedRandom()
	rt.StartMachine(platform{})
}

// platform is the machine, as rt.Platform.
type platform struct{}

// Open implements rt.Platform: it opens the network card of the machine, the first
// one that is found. With it the power button is heard and the entropy device asked; a
// program without a card may be alone with its goroutines, and the runtime says when all
// of them wait.
func (platform) Open(l guest.Link) (link.Device, error) {
	if l.Kind != guest.Card {
		return nil, fmt.Errorf("a machine has no link of kind %q", l.Kind)
	}
	d, err := hardware().find(virtio.Net, 0)
	if d == nil || err != nil {
		return nil, err
	}
	if firmware := hardware().firmware; firmware != nil {
		go hearButton(device.Open(), firmware)
	}
	go feedRandom()
	return virtionet.Open(d, virtionet.Config{
		Name: l.Name, MTU: l.MTU, MAC: l.MAC, Queues: runtime.NumCPU(), Log: slog.New(complaint.Handler{To: os.Stderr}),
	})
}

// devices are those of the machine.
type devices struct {
	firmware *acpi.Tables // nil: the machine has none
	found    []*virtio.Device
	why      error // what was in the way of finding all
}

// hardware looks wherever a machine may have devices, once.
var hardware = sync.OnceValue(func() *devices {
	m := device.Open()
	d := &devices{firmware: openFirmware()}
	places := virtio.Places{CommandLine: string(kernel.CommandLine())}
	if d.firmware != nil {
		places.DSDT = d.firmware.DSDT()
	}
	var noBus error
	if places.Bus, noBus = pci.Scan(m, d.firmware); noBus == nil {
		noBus = place(places.Bus, d.firmware)
	}
	found, refused := virtio.Find(m, places)
	d.found, d.why = found, errors.Join(append(refused, noBus)...)
	return d
})

// find is the device of a kind that so many others of it are before; nil if the machine
// has none.
func (d *devices) find(k virtio.Kind, before int) (*virtio.Device, error) {
	for _, v := range d.found {
		if v.Kind() != k {
			continue
		}
		if before == 0 {
			return v, nil
		}
		before--
	}
	return nil, d.why
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

// Archive implements rt.Platform: archives lie behind the program.
func (platform) Archive(number int) ([]byte, error) {
	if b, ok := boot.Archive(kernel.Files(), number); ok {
		return b, nil
	}
	return nil, fmt.Errorf("a machine was given no archive %d", number)
}

// Executable implements rt.Platform. The program is in memory, and not as the file
// that it was.
func (platform) Executable() (string, []byte) { return os.Args[0], nil }

// Maps implements rt.Platform.
func (platform) Maps() string { return "" }

// ClockSource implements rt.Platform: the time stamp counter, whatever it is kept right by.
func (platform) ClockSource() string { return "tsc" }
