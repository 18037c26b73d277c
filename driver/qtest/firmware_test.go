package qtest_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/driver/qtest"
	"loam/driver/rng"
	"loam/driver/virtio"
)

// Tests with QEMU's firmware. Drivers use the ACPI tables and the device addresses that the firmware sets up.

// boot starts a machine and waits until its ACPI tables are complete.
func boot(t *testing.T, kind string, args ...string) (*qtest.Machine, acpi.Tables) {
	t.Helper()
	m := qtest.Boot(t, kind, args...)
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		tables, problem := acpi.Open(m.Physical, acpi.FindRSDP(m.Physical))
		if problem == "" && tables.MADT() != nil && tables.DSDT() != nil {
			return m, tables
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("firmware leaves no tables: %s", problem)
		}
	}
}

func processors(m acpi.MADT) (n int) {
	for at := 0; ; {
		e, next, ok := m.Next(at)
		if !ok {
			return n
		}
		if (e.Kind == acpi.Processor || e.Kind == acpi.ProcessorX2) && e.Enabled {
			n++
		}
		at = next
	}
}

func TestQ35(t *testing.T) {
	m, tables := boot(t, "q35", "-smp", "3", "-device", "virtio-rng-pci,addr=5,rng=r", "-object", "rng-random,id=r,filename=/dev/urandom")
	madt := tables.MADT()
	if n := processors(madt); n != 3 {
		t.Errorf("%d processors, want 3", n)
	}
	if madt.LocalAPIC() != 0xfee00000 || !madt.HasPIC() {
		t.Errorf("local APIC at %#x", madt.LocalAPIC())
	}
	if gsi, _, _ := madt.Route(0); gsi != 2 {
		t.Errorf("IRQ 0 is interrupt %d, want 2", gsi)
	}
	if tables.HPET() != 0xfed00000 {
		t.Errorf("HPET at %#x", tables.HPET())
	}
	p, ok := tables.Power()
	if !ok || p.Interrupt != 9 || !p.ButtonIsFixed || p.Event1A.Address != 0x600 || p.Control1A.Address != 0x604 || p.Reset.Address != 0xcf9 {
		t.Errorf("power: %+v, %v", p, ok)
	}
	if a, b, ok := acpi.SleepTypes(tables.DSDT()); a != 0 || b != 0 || !ok {
		t.Errorf("S5 is %d, %d, %v", a, b, ok)
	}
	e, ok := tables.ECAM(0)
	if !ok || e.Address != 0xb0000000 || e.Last != 255 {
		t.Errorf("configuration space: %+v, %v", e, ok)
	}
	bus, err := pci.Scan(m, &tables)
	if err != nil {
		t.Fatal(err)
	}
	checkRandom(t, m, virtio.Places{Bus: bus, DSDT: tables.DSDT()})
}

// checkRandom checks that the machine's only virtio device is found, and that it returns random bytes.
func checkRandom(t *testing.T, m *qtest.Machine, p virtio.Places) {
	t.Helper()
	devices, refused := virtio.Find(m, p)
	if len(devices) != 1 || len(refused) != 0 {
		t.Fatalf("found %v, refused %v", devices, refused)
	}
	d, err := rng.Open(devices[0])
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := make([]byte, 100)
	if _, err := d.Read(b); err != nil || bytes.Equal(b, make([]byte, 100)) {
		t.Errorf("%x, %v", b, err)
	}
}

// A device that was removed after the scan is reported as gone, not as a legacy device.
func TestGone(t *testing.T) {
	m := qtest.Start(t, "q35", "-device", "virtio-rng-pci,addr=5")
	bus, err := pci.Scan(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Stop()
	devices, refused := virtio.Find(m, virtio.Places{Bus: bus})
	if len(devices) != 0 || len(refused) != 1 || !errors.Is(refused[0], virtio.ErrGone) {
		t.Errorf("found %v, refused %v", devices, refused)
	}
}

func TestMicrovm(t *testing.T) {
	m, tables := boot(t, "microvm,ioapic2=off", "-smp", "2", "-global", "virtio-mmio.force-legacy=false", "-device", "virtio-rng-device,rng=r", "-object", "rng-random,id=r,filename=/dev/urandom")
	if n := processors(tables.MADT()); n != 2 {
		t.Errorf("%d processors, want 2", n)
	}
	p, ok := tables.Power()
	if !ok || !p.Reduced || p.Sleep.Address == 0 || p.Reset.Address == 0 {
		t.Errorf("power: %+v, %v", p, ok)
	}
	if a, _, ok := acpi.SleepTypes(tables.DSDT()); a != 5 || !ok {
		t.Errorf("S5 is %d, %v", a, ok)
	}
	want := acpi.Button{Register: acpi.Register{Address: 0xfea00000}, Mask: 2, GSI: 9}
	if b, ok := acpi.FindButton(tables.DSDT()); !ok || b != want {
		t.Errorf("button: %+v, %v", b, ok)
	}
	d, _, ok := acpi.NextVirtioMMIO(tables.DSDT(), 0)
	if !ok || d.Size != 512 {
		t.Fatalf("device: %+v, %v", d, ok)
	}
	same := fmt.Sprintf("virtio_mmio.device=512@%#x:%d", d.Address, d.GSI)
	checkRandom(t, m, virtio.Places{DSDT: tables.DSDT(), CommandLine: same})
}
