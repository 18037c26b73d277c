package pci_test

import (
	"errors"
	"testing"
	"time"

	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/driver/qtest"
)

// holeStart and holeEnd are the bounds of the range of addresses that the tests pass to
// Assign.
const holeStart, holeEnd = 0xe000_0000, 0xfe00_0000

const redHat = 0x1af4 // vendor ID of virtio devices

func scan(t *testing.T, m *qtest.Machine) *pci.Bus {
	t.Helper()
	bus, err := pci.Scan(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Assign(holeStart, holeEnd); err != nil {
		t.Fatal(err)
	}
	return bus
}

func find(t *testing.T, bus *pci.Bus, vendor, device uint16) *pci.Function {
	t.Helper()
	for _, f := range bus.Functions() {
		if f.Vendor == vendor && f.Device == device {
			return f
		}
	}
	t.Fatalf("%04x:%04x is not among %v", vendor, device, bus.Functions())
	return nil
}

// The scan finds a device of QEMU on bus 0, behind one bridge and behind two bridges. The device responds at its
// assigned addresses.
func TestQEMU(t *testing.T) {
	for name, args := range map[string][]string{
		"bus 0":        {"-device", "virtio-rng-pci-non-transitional,bus=pcie.0"},
		"root port":    {"-device", "pcie-root-port,id=root,chassis=1", "-device", "virtio-rng-pci,bus=root"},
		"two bridges":  {"-device", "pcie-root-port,id=root,chassis=1", "-device", "pcie-pci-bridge,id=bridge,bus=root", "-device", "virtio-rng-pci,bus=bridge,addr=2,disable-legacy=on"},
		"two of ports": {"-device", "pcie-root-port,id=a,chassis=1", "-device", "pcie-root-port,id=b,chassis=2", "-device", "virtio-blk-pci,bus=a,drive=d", "-drive", "if=none,id=d,driver=null-co,read-zeroes=on", "-device", "virtio-rng-pci,bus=b"},
	} {
		t.Run(name, func(t *testing.T) {
			m := qtest.Start(t, "q35", args...)
			f := find(t, scan(t, m), redHat, 0x1044)
			checkMSIX(t, m, f)
		})
	}
}

// checkMSIX checks that the MSI-X table can be used.
func checkMSIX(t *testing.T, m *qtest.Machine, f *pci.Function) {
	t.Helper()
	f.Enable()
	x, err := f.MSIX()
	if err != nil {
		t.Fatal(err)
	}
	if x.Len() < 1 {
		t.Fatalf("%d vectors", x.Len())
	}
	interrupt, message, err := m.Message()
	if err != nil {
		t.Fatal(err)
	}
	defer interrupt.Close()
	if err := x.Set(x.Len()-1, message); err != nil {
		t.Error(err)
	}
	if err := x.Set(x.Len(), message); !errors.Is(err, pci.ErrVector) {
		t.Errorf("a vector too many: %v", err)
	}
	x.Close()
	if f.Gone() {
		t.Error("the function says that it has gone")
	}
}

// Memory-mapped configuration space works as the ports do. Firmware would configure its address; here the test
// does.
func TestQEMUMemoryConfig(t *testing.T) {
	m := qtest.Start(t, "q35", "-device", "virtio-rng-pci-non-transitional,bus=pcie.0")
	const where = 0xb000_0000
	const mchAddress, mchPCIEXBAR = 1 << 31, 0x60 // Intel 3 Series (MCH) data sheet, 5.1.16
	m.Out32(0xcf8, mchAddress|mchPCIEXBAR)
	m.Out32(0xcfc, where|1)
	tables := tablesWith(acpi.ECAM{Address: where, Last: 255})
	bus, err := pci.Scan(m, &tables)
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.Assign(holeStart, holeEnd); err != nil {
		t.Fatal(err)
	}
	checkMSIX(t, m, find(t, bus, redHat, 0x1044))
}

// After QEMU has exited, a scan finds nothing and does not hang.
func TestQEMUGone(t *testing.T) {
	m := qtest.Start(t, "q35", "-device", "virtio-rng-pci-non-transitional,bus=pcie.0")
	f := find(t, scan(t, m), redHat, 0x1044)
	m.Stop()
	if !f.Gone() {
		t.Error("the function is still there")
	}
	if _, err := f.MSIX(); err == nil {
		t.Error("MSIX works")
	}
	start := time.Now()
	if bus, _ := pci.Scan(m, nil); len(bus.Functions()) != 0 {
		t.Errorf("found %v after %v", bus.Functions(), time.Since(start))
	}
}
