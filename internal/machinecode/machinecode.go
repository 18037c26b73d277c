// Package machinecode is a small assembler. Instructions are written as bytes (Intel SDM, volume 2). Displacements of jumps
// and of addresses are filled in when the positions of all labels are known.
package machinecode

import "encoding/binary"

// Code is machine code with labels. The zero value is empty code.
type Code struct {
	Bytes  []byte
	labels map[string]int
	holes  []hole
}

// hole is a place in the code, at offset at, for a 32-bit displacement to a label, which Link fills in. The displacement is
// relative to the end of these four bytes.
type hole struct {
	at    int
	label string
}

// Label defines a label at the end of the code.
func (c *Code) Label(name string) {
	if c.labels == nil {
		c.labels = map[string]int{}
	}
	c.labels[name] = len(c.Bytes)
}

// Labels returns the offset of each label. The caller must not change the map.
func (c *Code) Labels() map[string]int { return c.labels }

// Emit appends bytes.
func (c *Code) Emit(b ...byte) { c.Bytes = append(c.Bytes, b...) }

// Emit32 appends bytes and a number of 32 bits.
func (c *Code) Emit32(v uint32, b ...byte) {
	c.Emit(b...)
	c.Bytes = binary.LittleEndian.AppendUint32(c.Bytes, v)
}

// Emit64 appends bytes and a number of 64 bits.
func (c *Code) Emit64(v uint64, b ...byte) {
	c.Emit(b...)
	c.Bytes = binary.LittleEndian.AppendUint64(c.Bytes, v)
}

// To appends an instruction whose last four bytes are the displacement to a label.
func (c *Code) To(label string, opcode ...byte) {
	c.Emit(opcode...)
	c.holes = append(c.holes, hole{len(c.Bytes), label})
	c.Emit(0, 0, 0, 0)
}

// Link fills in the displacements. others has the labels outside the code, with their distance from the start of the code.
// It panics if a label is not defined: that is an error in the caller's code.
func (c *Code) Link(others map[string]int) {
	for _, h := range c.holes {
		target, ok := c.labels[h.label]
		if !ok {
			target, ok = others[h.label]
		}
		if !ok {
			panic("machinecode: label " + h.label + " is not defined")
		}
		binary.LittleEndian.PutUint32(c.Bytes[h.at:], uint32(int32(target-h.at-4)))
	}
}
