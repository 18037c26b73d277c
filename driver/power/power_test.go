package power_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"loam/boot/acpi"
	"loam/driver"
	"loam/driver/power"
	"loam/driver/qtest"
)

// fixed describes the power control of QEMU's machine q35, as its firmware does.
var fixed = acpi.Power{
	Interrupt: 9, EventLen: 4, ButtonIsFixed: true,
	Event1A:   acpi.Register{Address: 0x600, Space: acpi.SpacePort},
	Control1A: acpi.Register{Address: 0x604, Space: acpi.SpacePort},
	Reset:     acpi.Register{Address: 0xcf9, Space: acpi.SpacePort}, ResetValue: 6,
}

// dsdt contains \_S5 with type 0, as QEMU's does.
var dsdt = []byte("\x08_S5_\x12\x06\x04\x00\x00\x00\x00")

// start starts QEMU's machine q35 and configures it as firmware would: the power
// management registers are at port 0x600 (ICH9 data sheet, 13.1.13 and 13.1.14).
func start(t *testing.T, args ...string) (*qtest.Machine, *power.Control) {
	t.Helper()
	m := qtest.Start(t, "q35", args...)
	const lpc = 1<<31 | 31<<11
	m.Out32(0xcf8, lpc|0x40)
	m.Out32(0xcfc, 0x601)
	m.Out32(0xcf8, lpc|0x44)
	m.Out8(0xcfc, 0x80)
	m.Out16(0x604, 1) // ACPI mode
	c, err := power.Open(m, fixed, dsdt, driver.LevelHigh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return m, c
}

// Every press of QEMU's power button is reported.
func TestQEMUButton(t *testing.T) {
	m, c := start(t)
	if !c.HasButton() {
		t.Fatal("there is no button")
	}
	for range 2 {
		m.Monitor(t, "system_powerdown")
		select {
		case <-c.Pressed():
		case <-time.After(time.Minute):
			t.Fatal("the button is not heard")
		}
	}
}

// Presses of a microvm's power button are reported. The firmware describes the button as a separate device.
func TestQEMUButtonDevice(t *testing.T) {
	const said = "ACPI0013\x00\x08_UID\x0dGED\x00\x08_CRS\x11\x0e\x0a\x0b\x89\x06\x00\x03\x01\x09\x00\x00\x00\x79\x00" +
		"\x5b\x80EREG\x00\x0c\x00\x00\xa0\xfe\x0a\x04\x5b\x81\x0bEREGCESEL\x20\x14\x1d_EVT\x09pESEL\x60" +
		"\xa0\x10\x93\x7b\x60\x0a\x02\x00\x0a\x02\x86PWRB\x0a\x80"
	m := qtest.Start(t, "microvm")
	c, err := power.Open(m, acpi.Power{Reduced: true}, []byte(said), driver.LevelHigh)
	if err != nil || !c.HasButton() {
		t.Fatal("there is no button", err)
	}
	defer c.Close()
	for range 2 {
		m.Monitor(t, "system_powerdown")
		select {
		case <-c.Pressed():
		case <-time.After(time.Minute):
			t.Fatal("the button is not heard")
		}
	}
}

func TestQEMUOff(t *testing.T) {
	m, c := start(t)
	go c.Off()
	if status := m.Wait(t); status != 0 {
		t.Errorf("QEMU ends with %d", status)
	}
}

func TestQEMUReset(t *testing.T) {
	m, c := start(t, "-no-reboot")
	go c.Reset()
	if status := m.Wait(t); status != 0 {
		t.Errorf("QEMU ends with %d", status)
	}
}

func TestQEMUExit(t *testing.T) {
	m := qtest.Start(t, "q35", "-device", "isa-debug-exit,iobase=0x501,iosize=2")
	go power.Exit(m, 0x501, 21)
	if status := m.Wait(t); status != 43 {
		t.Errorf("QEMU ends with %d, want 43", status)
	}
}

// idle is a machine whose ports store the values written to them and have no effect.
type idle struct {
	driver.Machine
	ports   map[uint16]uint16
	windows map[uint64]*window
}

func (m *idle) In16(port uint16) uint16     { return m.ports[port] }
func (m *idle) Out16(port uint16, v uint16) { m.ports[port] = v }
func (m *idle) Out8(port uint16, v uint8)   { m.ports[port] = uint16(v) }

func (m *idle) Registers(address uint64, _ int) (driver.Registers, error) {
	m.windows[address] = &window{}
	return m.windows[address], nil
}

func (m *idle) Line(uint32, driver.Trigger) (driver.Interrupt, error) {
	return nil, errors.New("there are no lines")
}

type window struct {
	driver.Registers
	v uint8
}

func (w *window) Write8(_ int, v uint8) { w.v = v }

// An operation that the machine ignores returns ErrRefused after a timeout; one that it does not support returns
// ErrNone at once.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed
		p.ButtonIsFixed = false
		m := &idle{ports: map[uint16]uint16{}, windows: map[uint64]*window{}}
		c, err := power.Open(m, p, dsdt, driver.LevelHigh)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := c.Off(); !errors.Is(err, power.ErrRefused) || time.Since(start) > 5*time.Second {
			t.Errorf("Off: %v", err)
		}
		if m.ports[0x604] != 1<<13 {
			t.Errorf("the control register has %#x", m.ports[0x604])
		}
		if err := c.Reset(); !errors.Is(err, power.ErrRefused) || m.ports[0xcf9] != 6 {
			t.Errorf("Reset: %v, %#x", err, m.ports[0xcf9])
		}
		for _, p := range []acpi.Power{{}, {Reduced: true}} {
			none, err := power.Open(m, p, nil, driver.LevelHigh)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(none.Off(), none.Reset()); !errors.Is(err, power.ErrNone) || none.HasButton() {
				t.Errorf("a machine without power control: %v", err)
			}
		}
		p.Command, p.Enable = 0xb2, 2
		if _, err := power.Open(m, p, dsdt, driver.LevelHigh); !errors.Is(err, power.ErrRefused) {
			t.Errorf("a machine that does not enter ACPI mode: %v", err)
		}
		if _, err := power.Open(m, fixed, dsdt, driver.LevelHigh); err == nil {
			t.Error("a button without a line is accepted")
		}
	})
}

// A hardware-reduced machine is switched off by its own registers.
func TestReduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &idle{ports: map[uint16]uint16{}, windows: map[uint64]*window{}}
		p := acpi.Power{Reduced: true, Sleep: acpi.Register{Address: 0xfea00200}, Status: acpi.Register{Address: 0xfea00201}}
		aml := []byte("\x08_S5_\x12\x08\x04\x0a\x05\x0a\x00\x00\x00")
		c, err := power.Open(m, p, aml, driver.LevelHigh)
		if err != nil {
			t.Fatal(err)
		}
		c.Off()
		if got := m.windows[0xfea00200].v; got != 5<<2|1<<5 {
			t.Errorf("the sleep control register has %#x", got)
		}
		if got := m.windows[0xfea00201].v; got != 1<<7 {
			t.Errorf("the sleep status register has %#x", got)
		}
	})
}
