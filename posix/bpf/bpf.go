// Package bpf implements the classic BPF machine of socket filters (socket(7), SO_ATTACH_FILTER;
// McCanne and Jacobson, 1993). A program inspects a packet and returns the number of bytes to keep.
//
// Linux's extensions, loads from negative offsets, are not supported.
package bpf

import (
	"encoding/binary"
	"errors"
)

// Instruction is struct sock_filter.
type Instruction struct {
	Code   uint16
	JT, JF uint8  // number of instructions to skip if the condition is true (JT) or false (JF)
	K      uint32 // constant operand, offset or jump distance, depending on Code
}

// Program is a program that New has checked.
type Program []Instruction

// MaxLen is the maximum number of instructions of a program (BPF_MAXINSNS).
const MaxLen = 4096

// ErrInvalid is returned for a program that Linux would reject, or that uses Linux's extensions.
var ErrInvalid = errors.New("bpf: no valid program")

// Values of Instruction.Code (linux/bpf_common.h): the instruction classes, followed by the modes, sizes and operations of
// each class.
const (
	classMask = 0x07
	ld        = 0x00
	ldx       = 0x01
	st        = 0x02
	stx       = 0x03
	alu       = 0x04
	jmp       = 0x05
	ret       = 0x06
	misc      = 0x07

	sizeMask = 0x18
	word     = 0x00
	half     = 0x08
	octet    = 0x10

	modeMask = 0xe0
	imm      = 0x00
	abs      = 0x20
	ind      = 0x40
	mem      = 0x60
	length   = 0x80
	msh      = 0xa0

	opMask = 0xf0
	add    = 0x00
	sub    = 0x10
	mul    = 0x20
	div    = 0x30
	or     = 0x40
	and    = 0x50
	lsh    = 0x60
	rsh    = 0x70
	neg    = 0x80
	mod    = 0x90
	xor    = 0xa0

	always  = 0x00
	equal   = 0x10
	greater = 0x20
	atLeast = 0x30
	anyBit  = 0x40

	fromX = 0x08 // BPF_X: the operand is register X instead of K
	fromA = 0x10 // BPF_A: a return instruction returns register A instead of K

	taxCode = misc
	txaCode = misc | 0x80

	cells = 16 // BPF_MEMWORDS: number of memory cells of a program
)

// New checks a program: it ends with a return, reads no memory cell before writing it, and does not
// divide by a constant zero. The program refers to list, which must not change. Errors: ErrInvalid.
func New(list []Instruction) (Program, error) {
	if len(list) == 0 || len(list) > MaxLen || list[len(list)-1].Code&classMask != ret {
		return nil, ErrInvalid
	}
	for at, i := range list {
		if !i.valid(len(list) - at - 1) {
			return nil, ErrInvalid
		}
	}
	if !cellsWritten(list) {
		return nil, ErrInvalid
	}
	return list, nil
}

// valid checks one instruction. behind is the number of instructions that follow it.
func (i Instruction) valid(behind int) bool {
	if i.Code > 0xff {
		return false
	}
	switch i.Code & classMask {
	case ld:
		return i.validLoad()
	case ldx:
		switch i.Code {
		case ldx | imm, ldx | length:
			return true
		case ldx | mem:
			return i.K < cells
		}
		return i.Code == ldx|octet|msh && int32(i.K) >= 0
	case st, stx:
		return i.Code&^classMask == 0 && i.K < cells
	case alu:
		return i.validOperation()
	case jmp:
		return i.validJump(behind)
	case ret:
		return i.Code == ret || i.Code == ret|fromA
	}
	return i.Code == taxCode || i.Code == txaCode
}

func (i Instruction) validLoad() bool {
	switch i.Code &^ sizeMask {
	case ld | abs, ld | ind:
		return i.Code&sizeMask != sizeMask && (i.Code&modeMask == ind || int32(i.K) >= 0)
	}
	return i.Code == ld|imm || i.Code == ld|length || i.Code == ld|mem && i.K < cells
}

func (i Instruction) validOperation() bool {
	constant := i.Code&fromX == 0
	switch op := i.Code & opMask; op {
	case div, mod:
		return !constant || i.K != 0
	case lsh, rsh:
		return !constant || i.K < 32
	case neg:
		return constant
	default:
		return op <= xor
	}
}

func (i Instruction) validJump(behind int) bool {
	switch i.Code & opMask {
	case always:
		return i.Code == jmp && i.K < uint32(behind)
	case equal, greater, atLeast, anyBit:
		return int(i.JT) < behind && int(i.JF) < behind
	}
	return false
}

// cellsWritten reports whether a program writes each memory cell before it reads the cell, on every path.
func cellsWritten(list []Instruction) bool {
	written := make([]uint16, len(list)) // for each instruction, a bit mask of the cells that all paths to it have written
	for at := range written {
		written[at] = 1<<cells - 1
	}
	var now uint16
	to := func(at int) { written[at] &= now }
	for at, i := range list {
		now &= written[at]
		switch class := i.Code & classMask; {
		case class == st || class == stx:
			now |= 1 << i.K
		case i.Code == ld|mem || i.Code == ldx|mem:
			if now&(1<<i.K) == 0 {
				return false
			}
		case i.Code == jmp:
			to(at + 1 + int(i.K))
			now = 1<<cells - 1
		case class == jmp:
			to(at + 1 + int(i.JT))
			to(at + 1 + int(i.JF))
			now = 1<<cells - 1
		}
	}
	return true
}

// machine holds the registers and memory cells of a running program.
type machine struct {
	packet []byte
	a, x   uint32
	memory [cells]uint32
}

// Run returns the number of bytes of the packet to keep, which may exceed its length. 0 drops the
// packet. A read past the end and a division by zero return 0 as well.
func (p Program) Run(packet []byte) uint32 {
	m := machine{packet: packet}
	for at := 0; ; at++ {
		i := p[at]
		ok := true
		switch i.Code & classMask {
		case ld:
			m.a, ok = m.load(i)
		case ldx:
			m.x, ok = m.loadX(i)
		case st:
			m.memory[i.K] = m.a
		case stx:
			m.memory[i.K] = m.x
		case alu:
			ok = m.operate(i)
		case jmp:
			at += m.jump(i)
		case ret:
			if i.Code&fromA != 0 {
				return m.a
			}
			return i.K
		default:
			if i.Code == taxCode {
				m.x = m.a
			} else {
				m.a = m.x
			}
		}
		if !ok {
			return 0
		}
	}
}

// load returns the value that a load instruction stores in register A. It returns false for a read past the end of the packet.
func (m *machine) load(i Instruction) (uint32, bool) {
	offset := uint64(i.K)
	switch i.Code & modeMask {
	case imm:
		return i.K, true
	case mem:
		return m.memory[i.K], true
	case length:
		return uint32(len(m.packet)), true
	case ind:
		offset = uint64(m.x + i.K)
	}
	size := uint64(4)
	switch i.Code & sizeMask {
	case half:
		size = 2
	case octet:
		size = 1
	}
	if offset+size > uint64(len(m.packet)) {
		return 0, false
	}
	b := m.packet[offset:]
	switch size {
	case 1:
		return uint32(b[0]), true
	case 2:
		return uint32(binary.BigEndian.Uint16(b)), true
	}
	return binary.BigEndian.Uint32(b), true
}

// loadX returns the value that an LDX instruction stores in register X. With BPF_MSH, it is the length of the IPv4 header at
// offset K.
func (m *machine) loadX(i Instruction) (uint32, bool) {
	if i.Code&modeMask != msh {
		return m.load(i)
	}
	if uint64(i.K) >= uint64(len(m.packet)) {
		return 0, false
	}
	return uint32(m.packet[i.K]&0xf) * 4, true
}

func (m *machine) operand(i Instruction) uint32 {
	if i.Code&fromX != 0 {
		return m.x
	}
	return i.K
}

// operate executes an arithmetic instruction on register A. It returns false for a division by zero.
func (m *machine) operate(i Instruction) bool {
	n := m.operand(i)
	switch i.Code & opMask {
	case add:
		m.a += n
	case sub:
		m.a -= n
	case mul:
		m.a *= n
	case div, mod:
		if n == 0 {
			return false
		}
		if i.Code&opMask == div {
			m.a /= n
		} else {
			m.a %= n
		}
	case or:
		m.a |= n
	case and:
		m.a &= n
	case lsh:
		m.a <<= n & 31
	case rsh:
		m.a >>= n & 31
	case neg:
		m.a = -m.a
	case xor:
		m.a ^= n
	}
	return true
}

// jump returns the number of instructions that a jump instruction skips.
func (m *machine) jump(i Instruction) int {
	n, holds := m.operand(i), false
	switch i.Code & opMask {
	case always:
		return int(i.K)
	case equal:
		holds = m.a == n
	case greater:
		holds = m.a > n
	case atLeast:
		holds = m.a >= n
	case anyBit:
		holds = m.a&n != 0
	}
	if holds {
		return int(i.JT)
	}
	return int(i.JF)
}
