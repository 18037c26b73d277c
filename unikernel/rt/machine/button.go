package machine

import (
	"os"
	"syscall"

	"loam/boot/acpi"
	"loam/driver"
	"loam/driver/power"
)

// The power button sends SIGTERM to the program, as service managers do on other systems.

// watchButton waits for presses of the power button, forever. It returns if the machine has no supported
// button.
func watchButton(m driver.Machine, firmware *acpi.Tables) {
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

// route returns the global system interrupt and trigger of the system control interrupt. The default is
// level, active low, unless firmware overrides it (ACPI 6.5 section 5.2.9: SCI_INT).
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
