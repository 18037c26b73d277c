// Package machine connects Loam to a program that runs in a virtual machine, in ring 0. It links the
// kernel, finds the machine's devices, and starts package rt with them. A guest of this kind imports no
// other package of Loam directly.
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
	"loam/link/e1000e"
	"loam/link/virtionet"
	"loam/unikernel/complaint"
	"loam/unikernel/guest"
	"loam/unikernel/rt"
)

// The init function runs before all packages of the program are initialised: see package rt.
func init() {
	limitMemory()
	seedRandom()
	rt.StartMachine(platform{})
}

// platform implements rt.Platform for a virtual machine.
type platform struct{}

// Open implements rt.Platform. It opens the machine's first virtio network card, or, if there is none, the first card of
// Intel that package e1000e supports. It also starts the goroutines that watch the power button and read the entropy device.
// Without a card neither is started: such a program may consist of its own goroutines only, and the runtime can then detect a
// deadlock.
func (platform) Open(l guest.Link) (link.Device, error) {
	if l.Kind != guest.Card {
		return nil, fmt.Errorf("a machine has no link of kind %q", l.Kind)
	}
	d, err := hardware().find(virtio.Net, 0)
	var f *pci.Function
	if d == nil {
		if f = hardware().firstIntel(); f == nil {
			return nil, err
		}
	}
	if firmware := hardware().firmware; firmware != nil {
		go watchButton(device.Open(), firmware)
	}
	go feedRandom()
	if f != nil {
		return e1000e.Open(device.Open(), f, e1000e.Config{
			Name: l.Name, MTU: min(l.MTU, e1000e.MaxMTU), MAC: l.MAC, Segment: l.Offloads.Has(link.OffloadTSO4),
			Log: slog.New(complaint.Handler{To: os.Stderr}),
		})
	}
	return virtionet.Open(d, virtionet.Config{
		Name: l.Name, MTU: l.MTU, MAC: l.MAC, Queues: runtime.NumCPU(), Log: slog.New(complaint.Handler{To: os.Stderr}),
	})
}

// devices are the devices of the machine.
type devices struct {
	firmware *acpi.Tables // ACPI tables; nil: the machine has none
	bus      *pci.Bus     // PCI bus; nil: the machine has none
	found    []*virtio.Device
	why      error // errors that occurred in the search for devices
}

// hardware finds the machine's devices, once.
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
	d.bus, d.found, d.why = places.Bus, found, errors.Join(append(refused, noBus)...)
	return d
})

// find returns the device of a kind that follows the given number of devices of that kind. If there is no such
// device, it returns nil and d.why.
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

// firstIntel returns the first PCI function that package e1000e supports, or nil.
func (d *devices) firstIntel() *pci.Function {
	if d.bus == nil {
		return nil
	}
	for _, f := range d.bus.Functions() {
		if e1000e.Supports(f) {
			return f
		}
	}
	return nil
}

// openFirmware returns the ACPI tables, or nil if the machine has none.
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

// Archive implements rt.Platform. Archives follow the program in memory.
func (platform) Archive(number int) ([]byte, error) {
	if b, ok := boot.Archive(kernel.Files(), number); ok {
		return b, nil
	}
	return nil, fmt.Errorf("a machine was given no archive %d", number)
}

// Executable implements rt.Platform. The program is only in memory; its executable file is not available.
func (platform) Executable(guest.Config) (string, []byte) { return os.Args[0], nil }

// Maps implements rt.Platform.
func (platform) Maps() string { return "" }

// ClockSource implements rt.Platform. The clock is the time stamp counter, however it is calibrated.
func (platform) ClockSource(guest.Config) string { return "tsc" }

// Meltdown implements rt.Platform.
func (platform) Meltdown() string { return kernel.Meltdown() }
