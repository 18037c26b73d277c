package model

// Status codes of a completed command.
const (
	success       = 0
	invalidOpcode = 0x01
	invalidField  = 0x02
	outOfRange    = 0x80
)

// administer executes an admin command.
func (c *Controller) administer(e []byte) (result uint32, status uint16) {
	address, dword10, dword11 := le.Uint64(e[24:]), le.Uint32(e[40:]), le.Uint32(e[44:])
	n, size := int(dword10&0xffff), int(dword10>>16)+1
	valid := n >= 1 && n <= c.Queues
	switch e[0] {
	case 0x06:
		c.identify(dword10&0xff, c.plug.Memory(address, 4096))
	case 0x09:
		return uint32(c.Queues-1)<<16 | uint32(c.Queues-1), success
	case 0x05:
		if !valid {
			return 0, invalidField
		}
		c.queues[n] = queue{done: address, doneSize: size, vector: int(dword11 >> 16), phase: 1}
	case 0x01:
		if !valid || c.queues[n].doneSize == 0 || int(dword11>>16) != n {
			return 0, invalidField
		}
		c.queues[n].submit, c.queues[n].submitSize = address, size
	default:
		return 0, invalidOpcode
	}
	return 0, success
}

// identify writes the 4096 bytes of Identify for the controller, the list of namespaces, or the
// first namespace.
func (c *Controller) identify(what uint32, b []byte) {
	clear(b)
	switch what {
	case 0:
		le.PutUint64(b, uint64(len(c.Data)/512))
		b[24] = 1 << 4          // NSFEAT: the field NPWG is valid
		le.PutUint16(b[64:], 7) // NPWG, Namespace Preferred Write Granularity: 8 blocks
		le.PutUint32(b[128:], 9<<16)
	case 1:
		b[77] = 3 // MDTS, Maximum Data Transfer Size: 32 KiB
		le.PutUint16(b[520:], 1<<2|1<<3)
		b[525] = 1
	case 2:
		le.PutUint32(b, 1)
	}
	if c.Change != nil {
		c.Change(what, b)
	}
}

// carryOut executes an I/O command, or misbehaves as Next decides.
func (c *Controller) carryOut(q *queue, e []byte) {
	lie, number := Truth, uint16(0)
	if c.Next != nil {
		lie, number = c.Next()
	}
	id := le.Uint16(e[2:])
	switch lie {
	case Silence:
		return
	case Fatal:
		c.regs[0x1c] |= 2
		c.interrupt(q.vector)
		return
	case Vanish:
		c.gone = true
		c.plug.Lower() // a removed device does not drive the line
		return
	case Status:
		c.complete(q, id, number&0x7ff, 0, true)
		return
	case WrongID:
		c.complete(q, number, success, 0, true)
		return
	}
	status := c.do(e)
	c.complete(q, id, status, uint32(number), lie != Quiet)
	switch lie {
	case Twice:
		c.complete(q, id, status, 0, true)
	case Spurious:
		c.interrupt(int(number))
	}
}

// do executes an I/O command.
func (c *Controller) do(e []byte) (status uint16) {
	first, dword12 := le.Uint64(e[40:]), le.Uint32(e[48:])
	n := uint64(dword12&0xffff) + 1
	if e[0] == 0x00 {
		c.Flushed++
		return success
	}
	if e[0] == 0x09 {
		r := c.plug.Memory(le.Uint64(e[24:]), 16)
		first, n = le.Uint64(r[8:]), uint64(le.Uint32(r[4:]))
	}
	blocks := uint64(len(c.Data) / 512)
	if le.Uint32(e[4:]) != 1 || first > blocks || n > blocks-first {
		return outOfRange
	}
	data := c.Data[first*512:][:n*512]
	if dword12>>30&1 != 0 && e[0] != 0x09 {
		c.Flushed++
	}
	switch e[0] {
	case 0x01, 0x02:
		c.transfer(e, data)
	case 0x08, 0x09:
		clear(data)
	default:
		return invalidOpcode
	}
	return success
}

// transfer moves data between blocks and the memory at the command's PRPs.
func (c *Controller) transfer(e, data []byte) {
	const page = 4096
	prp1, prp2 := le.Uint64(e[24:]), le.Uint64(e[32:])
	for i := 0; len(data) > 0; i++ {
		at := prp1
		switch {
		case i == 1 && len(data) <= page:
			at = prp2
		case i > 0:
			at = le.Uint64(c.plug.Memory(prp2+uint64(8*(i-1)), 8))
		}
		if i > 0 && at%page != 0 {
			panic("model: a PRP behind the first points into a page")
		}
		n := min(len(data), int(page-at%page))
		if memory := c.plug.Memory(at, n); e[0] == 0x01 {
			copy(data, memory)
		} else {
			copy(memory, data)
		}
		data = data[n:]
	}
}
