package model

// Interrupt reasons, bits of the port's interrupt status.
const (
	answered  = 1 << 0  // the disk sent a "device to host register" FIS
	completed = 1 << 3  // the disk sent a "set device bits" FIS, which completes queued commands
	changed   = 1 << 22 // the link has changed (PhyRdy)
	busError  = 1 << 29
	taskError = 1 << 30
)

// carryOut executes the command in a slot, or misbehaves as Next decides. It returns false if the
// port stops processing commands.
func (c *Controller) carryOut(slot int, header []byte) bool {
	table := c.plug.Memory(le.Uint64(header[8:]), 128+16*int(le.Uint16(header[2:])))
	bit := uint32(1) << slot
	lie := Truth
	if c.Next != nil && table[2] != 0xec {
		lie = c.Next()
	}
	queued := table[2] == 0x60 || table[2] == 0x61
	switch lie {
	case Silence:
		c.regs[pIssue] &^= bit // the command was sent to the disk: its bit in PxCI is cleared
		if !queued {
			c.regs[pIssue] |= bit
			return false
		}
		return true
	case Bus:
		c.event(busError)
		return false
	case Pulled:
		c.regs[pLink] = 0
		c.event(changed)
		return false
	case Vanish:
		c.gone = true
		c.plug.Lower() // a removed device does not drive the line
		return false
	}
	if lie == Fail || !c.do(table, int(le.Uint16(header[2:]))) {
		c.fail(bit, queued)
		return false
	}
	c.regs[pIssue] &^= bit
	if lie == Extra {
		c.regs[pIssue] &^= bit << 1
		c.regs[pActive] &^= bit << 1
	}
	reason := uint32(answered)
	if queued {
		c.regs[pActive] &^= bit
		reason = completed
	}
	if lie == Quiet {
		c.regs[pStatus] |= reason
	} else {
		c.event(reason)
	}
	return true
}

// fail ends a command with an error: the disk aborts all queued commands and waits for a reset.
func (c *Controller) fail(bit uint32, queued bool) {
	if queued {
		c.regs[pIssue] &^= bit // the bit in PxCI is cleared, and the bit in PxSACT stays set until the command completes
	}
	c.regs[pTask] = ready | 1 | 0x40<<8
	c.event(taskError)
}

// do executes the command in a command table. regions is the number of memory regions that the table lists for its data.
// do returns false if the command fails.
func (c *Controller) do(table []byte, regions int) bool {
	command, device := table[2], table[7]
	lba := uint64(table[4]) | uint64(table[5])<<8 | uint64(table[6])<<16 | uint64(table[8])<<24 | uint64(table[9])<<32 | uint64(table[10])<<40
	n := uint64(table[12]) | uint64(table[13])<<8
	switch command {
	case 0xec:
		b := make([]byte, 512)
		c.identify(b)
		c.move(table, regions, b, false)
	case 0xea:
		c.Flushed++
	case 0x06:
		return c.trim(table, regions)
	case 0x60, 0x61, 0x25, 0x35:
		if command == 0x60 || command == 0x61 {
			n = uint64(table[3]) | uint64(table[11])<<8
		}
		data, ok := c.sectors(lba, n)
		if !ok {
			return false
		}
		if command == 0x61 && device&0x80 != 0 {
			c.Flushed++
		}
		c.move(table, regions, data, command == 0x61 || command == 0x35)
	default:
		return false
	}
	return true
}

// sectors returns the data of a range of sectors; ok is false if the range is outside the disk or
// has a bad sector.
func (c *Controller) sectors(lba, n uint64) ([]byte, bool) {
	if all := uint64(len(c.Data) / 512); n == 0 || lba > all || n > all-lba {
		return nil, false
	}
	for i := range n {
		if c.Bad != nil && c.Bad(lba+i) {
			return nil, false
		}
	}
	return c.Data[lba*512:][:n*512], true
}

// move moves data between the disk and the regions of a table.
func (c *Controller) move(table []byte, regions int, data []byte, toDevice bool) {
	for i := range regions {
		b := table[128+16*i:]
		memory := c.plug.Memory(le.Uint64(b), int(le.Uint32(b[12:])&(1<<22-1))+1)
		if toDevice {
			data = data[copy(data, memory):]
		} else {
			data = data[copy(memory, data):]
		}
	}
}

// trim clears the ranges that are listed in the command's data.
func (c *Controller) trim(table []byte, regions int) bool {
	b := make([]byte, 512)
	for i := range regions {
		r := table[128+16*i:]
		copy(b, c.plug.Memory(le.Uint64(r), int(le.Uint32(r[12:])&(1<<22-1))+1))
	}
	for ; len(b) > 0; b = b[8:] {
		v := le.Uint64(b)
		if n := v >> 48; n > 0 {
			data, ok := c.sectors(v<<16>>16, n)
			if !ok {
				return false
			}
			clear(data)
		}
	}
	return true
}

// identify fills in the answer of the ATA command IDENTIFY DEVICE.
func (c *Controller) identify(b []byte) {
	word := func(i int, v uint16) { le.PutUint16(b[2*i:], v) }
	word(75, 31)
	word(76, 1<<8)
	word(82, 1<<5)
	word(83, 1<<14|1<<13|1<<10)
	word(84, 1<<14)
	if c.FUA {
		word(84, 1<<14|1<<6)
	}
	word(85, 1<<5)
	le.PutUint64(b[200:], uint64(len(c.Data)/512))
	word(106, 1<<14|1<<13|3)
	word(169, 1)
	if c.Change != nil {
		c.Change(b)
	}
}
