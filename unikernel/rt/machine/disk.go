package machine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"loam/abi/linux"
	"loam/block"
	"loam/block/ahci"
	"loam/block/nvme"
	"loam/block/virtioblk"
	"loam/driver/pci"
	"loam/driver/virtio"
	"loam/kernel/device"
	"loam/unikernel/guest"
)

// Disk implements rt.Platform. Disks of a kind are numbered in the order in which the machine has them.
func (platform) Disk(kind string, n int, name string) (block.Device, error) {
	switch kind {
	case guest.DiskVirtio:
		return openVirtio(n, name)
	case guest.DiskNVMe:
		return openNVMe(n, name)
	case guest.DiskAHCI:
		return openAHCI(n)
	}
	return nil, fmt.Errorf("a machine has no disk of kind %q", kind)
}

// openVirtio opens virtio disk n.
func openVirtio(n int, name string) (block.Device, error) {
	d, err := hardware().find(virtio.Block, n)
	if d == nil {
		return nil, errors.Join(err, linux.ENXIO)
	}
	return virtioblk.Open(d, virtioblk.Config{Name: name, Queues: runtime.NumCPU()})
}

// openNVMe opens the disk of NVMe controller n.
func openNVMe(n int, name string) (block.Device, error) {
	all := hardware().functions(nvme.Class)
	if n >= len(all) {
		return nil, errors.Join(hardware().why, linux.ENXIO)
	}
	return nvme.Open(device.Open(), all[n], nvme.Config{Name: name, Queues: runtime.NumCPU()})
}

// serialDisks opens all disks of all AHCI controllers together, once: they share interrupts.
var serialDisks = sync.OnceValues(func() (all []block.Device, err error) {
	err = hardware().why
	for _, f := range hardware().functions(ahci.Class) {
		first := len(all)
		disks, refused, problem := ahci.Open(device.Open(), f, func(n int) string { return "sd" + string(rune('a'+first+n)) })
		for _, d := range disks {
			all = append(all, d)
		}
		err = errors.Join(err, problem, errors.Join(refused...))
	}
	return all, err
})

// openAHCI opens AHCI disk n, counted over all controllers.
func openAHCI(n int) (block.Device, error) {
	all, err := serialDisks()
	if n >= len(all) {
		return nil, errors.Join(err, linux.ENXIO)
	}
	return all[n], nil
}

// functions returns the functions of a class on the PCI bus.
func (d *devices) functions(class uint32) (all []*pci.Function) {
	if d.bus == nil {
		return nil
	}
	for _, f := range d.bus.Functions() {
		if f.Class == class {
			all = append(all, f)
		}
	}
	return all
}
