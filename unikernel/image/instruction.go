package image

// Lengths of instructions in 64-bit mode: SDM volume 2, chapter 2 and appendix A. Validity and meaning of
// an instruction are not checked.

// instructionLength returns the length of the first instruction of code in bytes. It returns 0 if code does
// not start with a complete instruction.
func instructionLength(code []byte) int {
	d := decoder{code: code}
	d.prefixes()
	d.opcode()
	if d.bad || d.at > len(code) {
		return 0
	}
	return d.at
}

// decoder decodes one instruction.
type decoder struct {
	code    []byte
	at      int
	word    bool // the instruction has 16-bit operands (prefix 0x66)
	long    bool // the instruction has 64-bit operands (REX.W)
	address bool // the instruction has 32-bit addresses (prefix 0x67)
	bad     bool
}

// next returns the next byte and advances. It returns 0 after the end.
func (d *decoder) next() byte {
	d.at++
	if d.at > len(d.code) {
		d.bad = true
		return 0
	}
	return d.code[d.at-1]
}

// peek returns the byte that next would return.
func (d *decoder) peek() byte {
	if d.at < len(d.code) {
		return d.code[d.at]
	}
	return 0
}

// prefixes skips the prefixes of an instruction. REX must be the last prefix.
func (d *decoder) prefixes() {
	for d.at < len(d.code) {
		switch d.peek() {
		case 0x66:
			d.word = true
		case 0x67:
			d.address = true
		case 0xf0, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65:
		default:
			if rex := d.peek(); rex&0xf0 == 0x40 {
				d.long = rex&8 != 0
				d.at++
			}
			return
		}
		d.at++
	}
}

// Opcode maps: tables of opcodes, selected by the bytes before the opcode.
const (
	mapOne = iota // one-byte opcodes
	map0F
	map0F38
	map0F3A
)

// opcode reads the opcode and its operands.
func (d *decoder) opcode() {
	switch op := d.next(); op {
	case 0x0f:
		switch op := d.next(); op {
		case 0x38:
			d.operands(map0F38, d.next())
		case 0x3a:
			d.operands(map0F3A, d.next())
		default:
			d.operands(map0F, op)
		}
	case 0xc5: // prefix of a two-byte VEX instruction
		d.next()
		d.vector(map0F)
	case 0xc4: // prefix of a three-byte VEX instruction
		where := int(d.next() & 0x1f)
		d.next()
		d.vector(where)
	case 0x62: // prefix of an EVEX instruction
		where := int(d.next() & 0x7)
		d.next()
		d.next()
		d.vector(where)
	default:
		d.operands(mapOne, op)
	}
}

// vector reads the rest of a VEX or EVEX instruction. Its prefix selects the opcode map, where.
func (d *decoder) vector(where int) {
	d.bad = d.bad || where < map0F || where > map0F3A
	d.operands(where, d.next())
}

// operands skips the operands of an opcode: ModR/M and SIB bytes, displacement and immediate.
func (d *decoder) operands(where int, op byte) {
	field := byte(0) // field reg of the ModR/M byte, which is part of the opcode in some instructions
	if hasModRM(where, op) {
		field = d.modRM()
	}
	d.at += d.immediate(where, op, field)
}

// modRM reads a ModR/M byte, its SIB byte and its displacement, and returns the field reg.
func (d *decoder) modRM() byte {
	b := d.next()
	mod, rm := b>>6, b&7
	if mod == 3 {
		return b >> 3 & 7
	}
	base := rm
	if rm == 4 {
		base = d.next() & 7
	}
	switch {
	case mod == 1:
		d.at++
	case mod == 2, base == 5: // a 32-bit displacement; base 5 with mod 0 means no base register, or RIP-relative
		d.at += 4
	}
	return b >> 3 & 7
}

// ranges reports whether an opcode is in one of the ranges, both ends included.
func ranges(op byte, list ...[2]byte) bool {
	for _, r := range list {
		if op >= r[0] && op <= r[1] {
			return true
		}
	}
	return false
}

// hasModRM reports whether a ModR/M byte follows the opcode.
func hasModRM(where int, op byte) bool {
	switch where {
	case mapOne:
		return op < 0x40 && op&7 < 4 ||
			ranges(op, [2]byte{0x63, 0x63}, [2]byte{0x69, 0x69}, [2]byte{0x6b, 0x6b}, [2]byte{0x80, 0x8f},
				[2]byte{0xc0, 0xc1}, [2]byte{0xc6, 0xc7}, [2]byte{0xd0, 0xd3}, [2]byte{0xd8, 0xdf},
				[2]byte{0xf6, 0xf7}, [2]byte{0xfe, 0xff})
	case map0F:
		return !ranges(op, [2]byte{0x05, 0x09}, [2]byte{0x0b, 0x0b}, [2]byte{0x0e, 0x0e}, [2]byte{0x30, 0x37},
			[2]byte{0x77, 0x77}, [2]byte{0x80, 0x8f}, [2]byte{0xa0, 0xa2}, [2]byte{0xa8, 0xaa}, [2]byte{0xc8, 0xcf})
	}
	return true
}

// immediate returns the number of bytes of immediate operands.
func (d *decoder) immediate(where int, op, field byte) int {
	switch where {
	case map0F3A:
		return 1
	case map0F:
		switch {
		case ranges(op, [2]byte{0x70, 0x73}, [2]byte{0xa4, 0xa4}, [2]byte{0xac, 0xac}, [2]byte{0xba, 0xba},
			[2]byte{0xc2, 0xc2}, [2]byte{0xc4, 0xc6}):
			return 1
		case ranges(op, [2]byte{0x80, 0x8f}): // conditional jumps with a 32-bit displacement
			return 4
		}
	case mapOne:
		return d.immediateOne(op, field)
	}
	return 0
}

// immediateOne returns the number of bytes of immediate operands for one-byte opcodes.
func (d *decoder) immediateOne(op, field byte) int {
	operand := 4
	if d.word && !d.long {
		operand = 2
	}
	switch {
	case op < 0x40 && op&7 == 4, op == 0xf6 && field < 2,
		ranges(op, [2]byte{0x6a, 0x6b}, [2]byte{0x70, 0x80}, [2]byte{0x83, 0x83}, [2]byte{0xa8, 0xa8},
			[2]byte{0xb0, 0xb7}, [2]byte{0xc0, 0xc1}, [2]byte{0xc6, 0xc6}, [2]byte{0xcd, 0xcd},
			[2]byte{0xe0, 0xe7}, [2]byte{0xeb, 0xeb}):
		return 1
	case op < 0x40 && op&7 == 5, op == 0xf7 && field < 2,
		ranges(op, [2]byte{0x68, 0x69}, [2]byte{0x81, 0x81}, [2]byte{0xa9, 0xa9}, [2]byte{0xc7, 0xc7}):
		return operand
	case ranges(op, [2]byte{0xe8, 0xe9}): // CALL and JMP with a 32-bit displacement
		return 4
	case ranges(op, [2]byte{0xb8, 0xbf}):
		if d.long {
			return 8
		}
		return operand
	case ranges(op, [2]byte{0xa0, 0xa3}): // MOV with a 64-bit address
		if d.address {
			return 4
		}
		return 8
	case op == 0xc2, op == 0xca:
		return 2
	case op == 0xc8:
		return 3
	}
	return 0
}
