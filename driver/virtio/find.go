package virtio

import (
	"errors"

	"loam/boot/acpi"
	"loam/driver"
	"loam/driver/pci"
)

// Places lists the sources in which Find looks for devices; each field may be empty.
type Places struct {
	Bus         *pci.Bus
	DSDT        []byte // the firmware's DSDT: see acpi.Tables.DSDT
	CommandLine string // the kernel command line: see ParseCommandLine
}

// Find probes the devices that the fields of p list. It returns the virtio devices, those on the PCI bus first, and an
// error for each virtio device that it rejects. An address that is listed twice is probed only once.
func Find(m driver.Machine, p Places) (devices []*Device, refused []error) {
	probed := func(d *Device, err error) {
		switch {
		case err == nil:
			devices = append(devices, d)
		case !errors.Is(err, ErrNotVirtio):
			refused = append(refused, err)
		}
	}
	if p.Bus != nil {
		for _, f := range p.Bus.Functions() {
			probed(ProbePCI(m, f))
		}
	}
	seen := map[uint64]bool{}
	for _, where := range append(fromDSDT(p.DSDT), ParseCommandLine(p.CommandLine)...) {
		if !seen[where.Address] {
			seen[where.Address] = true
			probed(ProbeMMIO(m, where))
		}
	}
	return devices, refused
}

// fromDSDT returns the devices that firmware describes in the DSDT.
func fromDSDT(dsdt []byte) (all []MMIO) {
	for at := 0; ; {
		d, next, ok := acpi.NextVirtioMMIO(dsdt, at)
		if !ok {
			return all
		}
		all, at = append(all, MMIO{Address: d.Address, Size: int(min(d.Size, mostMMIO)), GSI: d.GSI, Trigger: trigger(&d)}), next
	}
}

func trigger(d *acpi.VirtioMMIO) driver.Trigger {
	switch {
	case !d.Level:
		return driver.EdgeHigh
	case d.Low:
		return driver.LevelLow
	}
	return driver.LevelHigh
}
