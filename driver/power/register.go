package power

import "loam/boot/acpi"

// ACPI registers are in I/O space or in memory. These functions access both kinds.

func (c *Control) read16(r acpi.Register) uint16 {
	if r.Space == acpi.SpacePort {
		return c.machine.In16(uint16(r.Address))
	}
	if w, err := c.machine.Registers(r.Address, 2); err == nil {
		return w.Read16(0)
	}
	return 0
}

func (c *Control) write16(r acpi.Register, v uint16) {
	if r.Space == acpi.SpacePort {
		c.machine.Out16(uint16(r.Address), v)
	} else if w, err := c.machine.Registers(r.Address, 2); err == nil {
		w.Write16(0, v)
	}
}

func (c *Control) write8(r acpi.Register, v uint8) {
	if r.Address == 0 {
		return
	}
	if r.Space == acpi.SpacePort {
		c.machine.Out8(uint16(r.Address), v)
	} else if w, err := c.machine.Registers(r.Address, 1); err == nil {
		w.Write8(0, v)
	}
}
