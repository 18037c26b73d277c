//go:build linux

package tap

import (
	"encoding/binary"
)

// An assembler of eBPF (RFC 9669), with the instructions that stray.go uses.

// instruction is one instruction in memory. The destination register is in the lower half of registers.
type instruction struct {
	code, registers uint8
	offset          int16
	immediate       int32
}

// Registers. r0 is the result of a call, and r1 to r5 are its arguments, which do not survive it. r10 is the frame
// pointer.
const (
	r0 = iota
	r1
	r2
	r3
	r4
	_
	r6
	r7
	r8
	r9
	r10
)

// Instructions on 64 bits (RFC 9669 section 3).
const (
	addImm      = 0x07
	addReg      = 0x0f
	mulReg      = 0x2f
	andImm      = 0x57
	andReg      = 0x5f
	leftImm     = 0x67
	rightImm    = 0x77
	rightReg    = 0x7f
	movImm      = 0xb7
	movReg      = 0xbf
	toBigEndian = 0xdc // immediate: the number of bits
	load8       = 0x71
	load16      = 0x69
	load32      = 0x61
	load64      = 0x79
	wide        = 0x18 // a constant of 64 bits, in two instructions
	callHelper  = 0x85
	exit        = 0x95
)

// Conditional jumps. They compare the destination register with the immediate or, with
// the flag register, with the source register.
const (
	ifEqual  = 0x15
	ifAbove  = 0x25
	ifAny    = 0x45 // jumps if the bitwise AND of both values is not 0
	ifNot    = 0x55
	ifBelow  = 0xa5
	register = 0x08
)

// Helper functions (bpf-helpers(7)).
const (
	ktimeGetNS    = 5
	getPrandomU32 = 7
	skbLoadBytes  = 26
)

// mapValue marks a wide constant as the address of the first value of an array map.
const mapValue = 2

// extended builds a program. Jumps go forward, to labels.
type extended struct {
	code  []instruction
	jumps map[string][]int // indices of the jumps to a label that has not been set
}

func (p *extended) add(code uint8, dst, src uint8, offset int16, immediate int32) {
	p.code = append(p.code, instruction{code, src<<4 | dst, offset, immediate})
}

// jump adds a conditional jump to a label.
func (p *extended) jump(condition uint8, dst, src uint8, immediate int32, label string) {
	if p.jumps == nil {
		p.jumps = make(map[string][]int)
	}
	p.jumps[label] = append(p.jumps[label], len(p.code))
	p.add(condition, dst, src, 0, immediate)
}

// label puts a label in front of the next instruction.
func (p *extended) label(name string) {
	for _, i := range p.jumps[name] {
		p.code[i].offset = int16(len(p.code) - i - 1)
	}
	delete(p.jumps, name)
}

func (p *extended) call(helper int32) { p.add(callHelper, 0, 0, 0, helper) }

// constant loads a constant.
func (p *extended) constant(dst uint8, v uint64) {
	p.add(wide, dst, 0, 0, int32(v))
	p.add(0, 0, 0, 0, int32(v>>32))
}

// value loads the address of the byte at an offset in the value of an array map.
func (p *extended) value(dst uint8, table, offset int) {
	p.add(wide, dst, mapValue, 0, int32(table))
	p.add(0, 0, 0, 0, int32(offset))
}

// copyFrame copies n bytes of the frame in r6 to a buffer at an offset from the frame pointer, and passes a frame
// that is too short. offset adds instructions that set r2 to the offset in the frame.
func (p *extended) copyFrame(buffer int32, n int32, offset func()) {
	offset()
	p.add(movReg, r1, r6, 0, 0)
	p.add(movReg, r3, r10, 0, 0)
	p.add(addImm, r3, 0, 0, buffer)
	p.add(movImm, r4, 0, 0, n)
	p.call(skbLoadBytes)
	p.jump(ifNot, r0, 0, 0, "pass")
}

// network16 returns v as this machine reads it from two bytes in network byte order.
func network16(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}
