package seal

import "errors"

// An assembler for classic BPF, limited to the instructions that filters of system calls need
// (Documentation/networking/filter.rst of Linux; seccomp(2)). Code is emitted in order. A label is the target of jumps,
// and must be placed after them.

// Instruction is struct sock_filter.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8 // number of instructions to skip if the comparison is true, and if it is false
	K      uint32
}

// Opcodes of the BPF instructions that a filter uses.
const (
	opLoad    = 0x20 // BPF_LD | BPF_W | BPF_ABS: the word at K of struct seccomp_data
	opEqual   = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	opAtLeast = 0x35 // BPF_JMP | BPF_JGE | BPF_K, unsigned
	opAnd     = 0x54 // BPF_ALU | BPF_AND | BPF_K
	opReturn  = 0x06 // BPF_RET | BPF_K

	opKeep     = 0x07 // BPF_MISC | BPF_TAX: X = A
	opAddX     = 0x0c // BPF_ALU | BPF_ADD | BPF_X, modulo 2^32
	opAtLeastX = 0x3d // BPF_JMP | BPF_JGE | BPF_X
)

// label is a jump target. next is the label of the following instruction.
type label int

const next label = -1

// maxLength is the longest program that Linux accepts, in instructions (BPF_MAXINSNS).
const maxLength = 4096

var (
	errLength = errors.New("seal: the filter is too long")
	errJump   = errors.New("seal: a jump of the filter is too far")
)

// assembler builds a program.
type assembler struct {
	code   []Instruction
	jumps  []distances
	labels []int // for each label, the index of the instruction that it marks; -1: not placed yet
	pid    []int // indices of instructions that compare with the process ID
}

// distances records a jump instruction whose distances are filled in when its target labels are placed.
type distances struct {
	at      int
	yes, no label
}

func (a *assembler) newLabel() label {
	a.labels = append(a.labels, -1)
	return label(len(a.labels) - 1)
}

// place makes the next instruction the target of label l.
func (a *assembler) place(l label) { a.labels[l] = len(a.code) }

func (a *assembler) load(offset uint32)   { a.emit(Instruction{Code: opLoad, K: offset}) }
func (a *assembler) and(mask uint32)      { a.emit(Instruction{Code: opAnd, K: mask}) }
func (a *assembler) result(action uint32) { a.emit(Instruction{Code: opReturn, K: action}) }
func (a *assembler) keep()                { a.emit(Instruction{Code: opKeep}) }
func (a *assembler) addKept()             { a.emit(Instruction{Code: opAddX}) }
func (a *assembler) emit(i Instruction)   { a.code = append(a.code, i) }

// branch compares the word loaded last with k, and jumps to the label yes or to the label no.
func (a *assembler) branch(op uint16, k uint32, yes, no label) {
	a.jumps = append(a.jumps, distances{len(a.code), yes, no})
	a.emit(Instruction{Code: op, K: k})
}

// jump emits an unconditional jump to l.
func (a *assembler) jump(l label) { a.branch(opEqual, 0, l, l) }

// assemble fills in the distances of all jumps, and returns the program.
func (a *assembler) assemble() ([]Instruction, error) {
	if len(a.code) > maxLength {
		return nil, errLength
	}
	for _, j := range a.jumps {
		yes, no := a.distance(j.at, j.yes), a.distance(j.at, j.no)
		if yes < 0 || yes > 255 || no < 0 || no > 255 {
			return nil, errJump
		}
		a.code[j.at].Jt, a.code[j.at].Jf = uint8(yes), uint8(no)
	}
	return a.code, nil
}

func (a *assembler) distance(at int, to label) int {
	if to == next {
		return 0
	}
	return a.labels[to] - at - 1
}
