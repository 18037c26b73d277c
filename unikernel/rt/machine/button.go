package machine

import (
	"os"
	"syscall"

	"loam/boot/acpi"
	"loam/driver"
	"loam/driver/power"
)

// The power button asks the program to end, as systems do that run servers: SIGTERM.

// hearButton waits for the power button, for ever. A machine without one that we
// understand goes on without.
func hearButton(m driver.Machine, firmware *acpi.Tables) {
	p, ok := firmware.Power()
	if !ok {
		return
	}
	var trigger driver.Trigger
	p.Interrupt, trigger = route(firmware.MADT(), p.Interrupt)
	c, err := power.Open(m, p, firmware.DSDT(), trigger)
	if err != nil || !c.HasButton() {
		return
	}
	for range c.Pressed() {
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}

// route is where the system control interrupt arrives, and how. It is low and level
// if firmware does not say otherwise (ACPI 6.5 section 5.2.9: SCI_INT).
func route(m acpi.MADT, irq uint32) (gsi uint32, t driver.Trigger) {
	if m == nil || irq > 0xff {
		return irq, driver.LevelLow
	}
	gsi, level, low := m.Route(uint8(irq))
	if level && !low {
		return gsi, driver.LevelHigh
	}
	return gsi, driver.LevelLow
}
