package qtest

import (
	"fmt"
	"testing"

	"loam/driver"
	"loam/driver/pci"
	"loam/driver/virtio"
)

// Way is a method of attaching a virtio device to a machine, such as PCI with MSI-X.
type Way struct {
	Name  string
	start func(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device)
}

// Ways lists all methods of attaching a virtio device.
var Ways = []Way{
	{"PCI with MSI-X", func(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
		return startPCI(t, device+"-pci", options, args)
	}},
	{"PCI with one vector", func(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
		return startPCI(t, device+"-pci", "vectors=1,"+options, args)
	}},
	{"PCI with a line", func(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
		return startPCI(t, device+"-pci-non-transitional", "vectors=0,"+options, args)
	}},
	{"MMIO", startMMIO},
}

// Start starts a machine with a virtio device, and probes the device. device is the name without the bus, such as
// "virtio-rng"; options are QEMU's options of the device, and args further arguments of QEMU.
func (w Way) Start(t testing.TB, device, options string, args ...string) (*Machine, *virtio.Device) {
	t.Helper()
	return w.start(t, device, options, args)
}

// slot is the PCI slot in which startPCI puts the device, and slotGSI the number of its interrupt line. No firmware
// table gives that number, so it is computed as on QEMU's q35: PIRQ E to H are interrupts 20 to 23, and pin A of slot n
// is PIRQ E+n%4.
const (
	slot    = 4
	slotGSI = 20 + slot%4
)

// startPCI starts a machine with a virtio device on the PCI bus, and probes the device.
func startPCI(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
	t.Helper()
	m, f := StartPCI(t, device, options, args...)
	d, err := virtio.ProbePCI(m, f)
	if err != nil {
		t.Fatal(err)
	}
	return m, d
}

// StartPCI starts a machine with a PCI device, and finds its function. device is QEMU's name, such as "nvme"; options
// are QEMU's options of the device, and args further arguments of QEMU.
func StartPCI(t testing.TB, device, options string, args ...string) (*Machine, *pci.Function) {
	t.Helper()
	m := Start(t, "q35", append([]string{"-device", fmt.Sprintf("%s,bus=pcie.0,addr=%d,%s", device, slot, options)}, args...)...)
	const line = 0x3c // interrupt line register, which only firmware and drivers use
	m.Out32(0xcf8, 1<<31|slot<<11|line)
	m.Out32(0xcfc, m.In32(0xcfc)&^0xff|slotGSI)
	bus, err := pci.Scan(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Assign(0xe000_0000, 0xfe00_0000); err != nil {
		t.Fatal(err)
	}
	for _, f := range bus.Functions() {
		if f.Address.Device == slot {
			return m, f
		}
	}
	t.Fatalf("no device in slot %d of %v", slot, bus.Functions())
	return nil, nil
}

// Registers of the virtio devices in QEMU's microvm: QEMU's hw/i386/microvm.c. QEMU puts the first device into the last
// slot.
const (
	mmioBase   = 0xfeb0_0000
	mmioSize   = 512
	mmioPlaces = 8
	mmioGSI    = 16
)

// startMMIO starts a microvm with a virtio device over MMIO, and probes the device.
func startMMIO(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
	t.Helper()
	m := Start(t, "microvm,ioapic2=off", append([]string{"-global", "virtio-mmio.force-legacy=false", "-device", device + "-device," + options}, args...)...)
	for i := range mmioPlaces {
		d, err := virtio.ProbeMMIO(m, virtio.MMIO{
			Address: mmioBase + uint64(i)*mmioSize, Size: mmioSize, GSI: mmioGSI + uint32(i), Trigger: driver.LevelHigh,
		})
		if err == nil {
			return m, d
		}
	}
	t.Fatal("no device in memory")
	return nil, nil
}
