// Package power switches the machine off, and hears its power button: the fixed
// hardware of ACPI ("ACPI" 6.5 chapter 4), the control registers and the event device of
// machines with reduced hardware, and the device by which QEMU ends with an exit status.
package power

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"loam/boot/acpi"
	"loam/driver"
	"loam/internal/crew"
)

// Errors.
var (
	ErrNone    = errors.New("power: firmware describes no way to do that")
	ErrRefused = errors.New("power: the machine did not do it")
)

// Bits of the event and control registers (section 4.8.3), and of the sleep control
// register of reduced hardware (section 4.8.3.7).
const (
	eventButton  = 1 << 8
	controlSCI   = 1 << 0 // the machine is in ACPI mode
	controlType  = 10     // SLP_TYP is from here on
	controlSleep = 1 << 13

	sleepType   = 2
	sleepEnable = 1 << 5
	sleepWake   = 1 << 7 // of the status register
)

// bound is how long the machine may take: to change its mode, or to end.
const bound = 3 * time.Second

// tick is how often it is looked at meanwhile.
const tick = 5 * time.Millisecond

// Control is the machine's power. Its methods may be called from several goroutines.
type Control struct {
	machine driver.Machine
	power   acpi.Power
	types   [2]uint8 // what switches it off: see acpi.SleepTypes
	canOff  bool

	mu sync.Mutex // guards the registers

	// pressed has one place. The loop sends, without blocking, when the button was
	// pressed (full: nobody has looked at the last time); the owner receives. It is
	// never closed.
	pressed chan struct{}
	irq     driver.Interrupt // nil: there is no button
	button  driver.Registers // what says that it was pressed; nil: the fixed registers
	mask    uint32           // of it
	done    chan struct{}    // closed by Close
	closing sync.Once
	crew    crew.Crew
}

// Open reads what firmware says about power. dsdt may be nil: see acpi.Tables.DSDT.
// trigger is how the system control interrupt is wired: see acpi.MADT.Route.
func Open(m driver.Machine, p acpi.Power, dsdt []byte, trigger driver.Trigger) (*Control, error) {
	c := &Control{machine: m, power: p, pressed: make(chan struct{}, 1), done: make(chan struct{})}
	c.types[0], c.types[1], c.canOff = acpi.SleepTypes(dsdt)
	if p.Reduced {
		c.canOff = c.canOff && p.Sleep.Address != 0
	} else {
		c.canOff = c.canOff && p.Control1A.Address != 0
		if err := c.enterACPI(); err != nil {
			return nil, err
		}
	}
	if b, ok := acpi.FindButton(dsdt); ok && !p.ButtonIsFixed {
		if err := c.openButton(b); err != nil {
			return nil, err
		}
		return c, nil
	}
	if !p.ButtonIsFixed || p.Event1A.Space != acpi.SpacePort || p.Event1A.Address == 0 {
		return c, nil
	}
	irq, err := m.Line(p.Interrupt, trigger)
	if err != nil {
		return nil, fmt.Errorf("power: the system control interrupt: %w", err)
	}
	c.irq = irq
	port := uint16(p.Event1A.Address)
	m.Out16(port, eventButton) // what was before
	m.Out16(port+uint16(p.EventLen/2), eventButton)
	c.crew.Start(c.loop)
	return c, nil
}

// openButton has the button heard that is a device of its own.
func (c *Control) openButton(b acpi.Button) (err error) {
	trigger := driver.EdgeHigh
	switch {
	case b.Level && b.Low:
		trigger = driver.LevelLow
	case b.Level:
		trigger = driver.LevelHigh
	}
	const size = 4
	if c.button, err = c.machine.Registers(b.Register.Address, size); err != nil {
		return fmt.Errorf("power: the button: %w", err)
	}
	c.mask = b.Mask
	c.button.Read32(0) // what was before
	if c.irq, err = c.machine.Line(b.GSI, trigger); err != nil {
		return fmt.Errorf("power: the button's interrupt: %w", err)
	}
	c.crew.Start(c.loop)
	return nil
}

// wasPressed reports whether it was since the last time. The line is shared with other
// events, which nobody has enabled.
func (c *Control) wasPressed() bool {
	if c.button != nil {
		events := c.button.Read32(0)
		return events != 1<<32-1 && events&c.mask != 0
	}
	port := uint16(c.power.Event1A.Address)
	events := c.machine.In16(port)
	if events == 0xffff || events&eventButton == 0 {
		return false
	}
	c.machine.Out16(port, eventButton) // clears it
	return true
}

// enterACPI tells firmware, once, that the registers are ours (section 5.2.9.1).
func (c *Control) enterACPI() error {
	p := &c.power
	if p.Command == 0 || p.Enable == 0 || p.Control1A.Address == 0 || c.read16(p.Control1A)&controlSCI != 0 {
		return nil
	}
	c.machine.Out8(p.Command, p.Enable)
	for start := time.Now(); c.read16(p.Control1A)&controlSCI == 0; time.Sleep(tick) {
		if time.Since(start) > bound {
			return fmt.Errorf("%w: it does not enter ACPI mode", ErrRefused)
		}
	}
	return nil
}

// Pressed rings when the power button was pressed.
func (c *Control) Pressed() <-chan struct{} { return c.pressed }

// HasButton reports whether Pressed can ever ring.
func (c *Control) HasButton() bool { return c.irq != nil }

// loop hears the button.
func (c *Control) loop() {
	for {
		select {
		case <-c.irq.C():
		case <-c.done:
			return
		}
		if c.wasPressed() {
			select {
			case c.pressed <- struct{}{}:
			default:
			}
		}
		c.irq.Done()
	}
}

// Off switches the machine off, and so returns only an error.
func (c *Control) Off() error {
	if !c.canOff {
		return ErrNone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.power
	if p.Reduced {
		c.write8(p.Status, sleepWake) // clears it
		c.write8(p.Sleep, c.types[0]<<sleepType|sleepEnable)
	} else {
		c.sleep(p.Control1A, c.types[0])
		c.sleep(p.Control1B, c.types[1])
	}
	time.Sleep(bound)
	return ErrRefused
}

// sleep writes to a control register, if it is there.
func (c *Control) sleep(r acpi.Register, kind uint8) {
	if r.Address == 0 {
		return
	}
	const typeMask = 7 << controlType
	v := c.read16(r)&^(typeMask|controlSleep) | uint16(kind)<<controlType
	c.write16(r, v)
	c.write16(r, v|controlSleep)
}

// Reset starts the machine again, and so returns only an error.
func (c *Control) Reset() error {
	if c.power.Reset.Address == 0 {
		return ErrNone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write8(c.power.Reset, c.power.ResetValue)
	time.Sleep(bound)
	return ErrRefused
}

// Close ends the hearing of the button.
func (c *Control) Close() {
	c.closing.Do(func() {
		close(c.done)
		c.crew.Wait()
		if c.irq == nil {
			return
		}
		if c.button == nil {
			c.machine.Out16(uint16(c.power.Event1A.Address)+uint16(c.power.EventLen/2), 0)
		}
		c.irq.Close()
	})
}

// Exit ends QEMU by its device isa-debug-exit at a port: the status is 2*code + 1.
// Where there is no such device it returns.
func Exit(m driver.Machine, port uint16, code uint8) { m.Out8(port, code) }
