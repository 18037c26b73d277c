package qtest

import (
	"fmt"
	"testing"

	"loam/driver"
	"loam/driver/pci"
	"loam/driver/virtio"
)

// Way is one of the ways in which a virtio device can be part of a machine.
type Way struct {
	Name  string
	start func(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device)
}

// Ways are all of them.
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

// Start starts a machine with a device ("virtio-rng") and its options, and finds it.
// args are more arguments of QEMU, behind those.
func (w Way) Start(t testing.TB, device, options string, args ...string) (*Machine, *virtio.Device) {
	t.Helper()
	return w.start(t, device, options, args)
}

// slot is where startPCI plugs the device in, and slotGSI where its line arrives:
// without a table of firmware, what is known of QEMU's q35 (PIRQ E to H are
// interrupts 20 to 23, and pin A of slot n is PIRQ E+n%4).
const (
	slot    = 4
	slotGSI = 20 + slot%4
)

func startPCI(t testing.TB, device, options string, args []string) (*Machine, *virtio.Device) {
	t.Helper()
	m := Start(t, "q35", append([]string{"-device", fmt.Sprintf("%s,bus=pcie.0,addr=%d,%s", device, slot, options)}, args...)...)
	const line = 0x3c // a register that only firmware and drivers use
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
			d, err := virtio.ProbePCI(m, f)
			if err != nil {
				t.Fatal(err)
			}
			return m, d
		}
	}
	t.Fatalf("no device in slot %d of %v", slot, bus.Functions())
	return nil, nil
}

// Where QEMU's microvm has its devices: hw/i386/microvm.c there. The last place is
// filled first.
const (
	mmioBase   = 0xfeb0_0000
	mmioSize   = 512
	mmioPlaces = 8
	mmioGSI    = 16
)

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
