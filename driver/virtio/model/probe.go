package model

import (
	"testing"

	"loam/driver"
	"loam/driver/pci"
	"loam/driver/virtio"
)

// Ways are the methods of attaching a device to a machine, by name.
var Ways = map[string]func(m *Machine, d *Device, queues int) (*virtio.Device, error){
	"PCI, a vector for each": func(m *Machine, d *Device, queues int) (*virtio.Device, error) {
		m.AddPCI(d, queues, queues+1)
		return m.probePCI()
	},
	"PCI, one vector": func(m *Machine, d *Device, queues int) (*virtio.Device, error) {
		m.AddPCI(d, queues, 1)
		return m.probePCI()
	},
	"PCI, a line": func(m *Machine, d *Device, queues int) (*virtio.Device, error) {
		m.AddPCI(d, queues, 0)
		return m.probePCI()
	},
	"MMIO": func(m *Machine, d *Device, queues int) (*virtio.Device, error) {
		address, size, gsi := m.AddMMIO(d, queues)
		return virtio.ProbeMMIO(m, virtio.MMIO{Address: address, Size: size, GSI: gsi, Trigger: driver.LevelHigh})
	},
}

// probePCI probes the PCI function that was added last.
func (m *Machine) probePCI() (*virtio.Device, error) {
	bus, err := pci.Scan(m, nil)
	if err != nil {
		return nil, err
	}
	all := bus.Functions()
	return virtio.ProbePCI(m, all[len(all)-1])
}

// Add attaches a device to the machine by the method way, a key of Ways, and probes it. It closes the device at the end
// of the test.
func (m *Machine) Add(t testing.TB, way string, d *Device, queues int) *virtio.Device {
	t.Helper()
	v, err := Ways[way](m, d, queues)
	t.Cleanup(d.Close)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
