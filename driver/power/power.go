// Package power switches the machine off and reports presses of its power button. It supports three kinds of hardware:
// the fixed hardware of ACPI ("ACPI" 6.5 chapter 4), the control registers and the event device of hardware-reduced
// machines, and QEMU's device that ends QEMU with an exit status.
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

// Errors of this package.
var (
	ErrNone    = errors.New("power: firmware describes no way to do that")
	ErrRefused = errors.New("power: the machine did not do it")
)

// Bits of the event and control registers (ACPI 6.5 section 4.8.3), and of the sleep control register of reduced
// hardware (ACPI 6.5 section 4.8.3.7).
const (
	eventButton  = 1 << 8
	controlSCI   = 1 << 0 // SCI_EN: the machine is in ACPI mode
	controlType  = 10     // number of the lowest bit of the field SLP_TYP
	controlSleep = 1 << 13

	sleepType   = 2
	sleepEnable = 1 << 5
	sleepWake   = 1 << 7 // WAK_STS, in the sleep status register
)

// bound is the maximum time that the machine may take to enter ACPI mode or to switch off.
const bound = 3 * time.Second

// tick is the interval at which registers are polled.
const tick = 5 * time.Millisecond

// Control controls the machine's power. Its methods may be called from several goroutines.
type Control struct {
	machine driver.Machine
	power   acpi.Power
	types   [2]uint8 // values of SLP_TYP that switch the machine off: see acpi.SleepTypes
	canOff  bool

	mu sync.Mutex // guards the registers

	// pressed has capacity 1. After a press, the goroutine loop sends without blocking; if the channel is full, an
	// earlier press has not been received yet. The owner of Control receives. The channel is never closed.
	pressed chan struct{}
	irq     driver.Interrupt // nil: there is no button
	button  driver.Registers // event register of the button; nil: the button is a bit of the fixed registers
	mask    uint32           // the bit of the register button that reports a press
	done    chan struct{}    // closed by Close
	closing sync.Once
	crew    crew.Crew
}

// Open evaluates firmware's description of power control, enters ACPI mode and enables the power button. dsdt may be
// nil: see acpi.Tables.DSDT. trigger is the trigger mode of the system control interrupt: see acpi.MADT.Route.
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
	m.Out16(port, eventButton) // clears the report of an earlier press
	m.Out16(port+uint16(p.EventLen/2), eventButton)
	c.crew.Start(c.loop)
	return c, nil
}

// openButton enables a power button that is a device separate from the fixed registers.
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
	c.button.Read32(0) // clears earlier events
	if c.irq, err = c.machine.Line(b.GSI, trigger); err != nil {
		return fmt.Errorf("power: the button's interrupt: %w", err)
	}
	c.crew.Start(c.loop)
	return nil
}

// wasPressed reports whether the button was pressed since the last call. The interrupt line is shared with other
// events; none of them is enabled.
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
	c.machine.Out16(port, eventButton) // writing 1 clears the bit
	return true
}

// enterACPI switches the machine to ACPI mode, unless it is in ACPI mode already (section 5.2.9.1).
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

// Pressed returns a channel that receives after the power button was pressed. Several presses may cause only one value.
func (c *Control) Pressed() <-chan struct{} { return c.pressed }

// HasButton reports whether the machine has a power button. The method Pressed reports
// its presses.
func (c *Control) HasButton() bool { return c.irq != nil }

// loop handles interrupts of the button until Close.
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

// Off switches the machine off. It returns only on failure: ErrNone if firmware describes no way to switch the machine
// off, ErrRefused if the machine still runs after the time bound.
func (c *Control) Off() error {
	if !c.canOff {
		return ErrNone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.power
	if p.Reduced {
		c.write8(p.Status, sleepWake) // writing 1 clears the bit
		c.write8(p.Sleep, c.types[0]<<sleepType|sleepEnable)
	} else {
		c.sleep(p.Control1A, c.types[0])
		c.sleep(p.Control1B, c.types[1])
	}
	time.Sleep(bound)
	return ErrRefused
}

// sleep writes SLP_TYP with the value kind to a control register, if the register exists.
func (c *Control) sleep(r acpi.Register, kind uint8) {
	if r.Address == 0 {
		return
	}
	const typeMask = 7 << controlType
	v := c.read16(r)&^(typeMask|controlSleep) | uint16(kind)<<controlType
	c.write16(r, v)
	c.write16(r, v|controlSleep)
}

// Reset resets the machine. It returns only on failure: ErrNone if firmware describes no way to reset the machine,
// ErrRefused if the machine still runs after the time bound.
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

// Close stops the handling of the power button. It may be called more than once.
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

// Exit ends QEMU through its device isa-debug-exit, which is at an I/O port. The exit status is 2*code + 1. If the
// machine has no such device, Exit returns.
func Exit(m driver.Machine, port uint16, code uint8) { m.Out8(port, code) }
