package bpf

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

var packet = []byte{0x45, 1, 2, 3, 4, 5, 6, 7}

func TestRun(t *testing.T) {
	for what, c := range map[string]struct {
		program Program
		want    uint32
	}{
		"a constant":        {Program{{ret, 0, 0, 7}}, 7},
		"a word":            {Program{{ld | abs, 0, 0, 4}, {ret | fromA, 0, 0, 0}}, 0x04050607},
		"half a word":       {Program{{ld | half | abs, 0, 0, 6}, {ret | fromA, 0, 0, 0}}, 0x0607},
		"an octet by X":     {Program{{ldx | imm, 0, 0, 2}, {ld | octet | ind, 0, 0, 1}, {ret | fromA, 0, 0, 0}}, 3},
		"X before K":        {Program{{ldx | imm, 0, 0, 2}, {ld | octet | ind, 0, 0, 0xffffffff}, {ret | fromA, 0, 0, 0}}, 1},
		"beyond the end":    {Program{{ld | abs, 0, 0, 5}, {ret, 0, 0, 7}}, 0},
		"far beyond":        {Program{{ldx | imm, 0, 0, 0xffffffff}, {ld | octet | ind, 0, 0, 0}, {ret, 0, 0, 7}}, 0},
		"the length":        {Program{{ld | length, 0, 0, 0}, {ret | fromA, 0, 0, 0}}, 8},
		"a header's length": {Program{{ldx | octet | msh, 0, 0, 0}, {txaCode, 0, 0, 0}, {ret | fromA, 0, 0, 0}}, 20},
		"no header":         {Program{{ldx | octet | msh, 0, 0, 8}, {ret, 0, 0, 7}}, 0},
		"memory":            {Program{{ld | imm, 0, 0, 5}, {st, 0, 0, 15}, {ldx | mem, 0, 0, 15}, {stx, 0, 0, 1}, {ld | mem, 0, 0, 1}, {ret | fromA, 0, 0, 0}}, 5},
		"division by zero":  {Program{{ld | imm, 0, 0, 5}, {alu | div | fromX, 0, 0, 0}, {ret, 0, 0, 7}}, 0},
		"a jump if true":    {Program{{ld | octet | abs, 0, 0, 0}, {jmp | equal, 1, 0, 0x45}, {ret, 0, 0, 1}, {ret, 0, 0, 2}}, 2},
		"a jump if not":     {Program{{ld | octet | abs, 0, 0, 0}, {jmp | greater, 0, 1, 0x45}, {ret, 0, 0, 1}, {ret, 0, 0, 2}}, 2},
		"a jump":            {Program{{jmp, 0, 0, 1}, {ret, 0, 0, 1}, {ret, 0, 0, 2}}, 2},
	} {
		p, err := New(c.program)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if got := p.Run(packet); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// All operations and comparisons work with a constant and with the index register X as operand.
func TestOperations(t *testing.T) {
	for op, want := range map[uint16]uint32{
		add: 23, sub: 17, mul: 60, div: 6, mod: 2, or: 23, and: 0, lsh: 160, rsh: 2, xor: 23,
	} {
		for _, from := range []uint16{0, fromX} {
			p, err := New(Program{{ld | imm, 0, 0, 20}, {ldx | imm, 0, 0, 3}, {alu | op | from, 0, 0, 3}, {ret | fromA, 0, 0, 0}})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Run(nil); got != want {
				t.Errorf("operation %#x: %d, want %d", op|from, got, want)
			}
		}
	}
	p, err := New(Program{{ld | imm, 0, 0, 1}, {alu | neg, 0, 0, 0}, {taxCode, 0, 0, 0}, {jmp | atLeast | fromX, 0, 1, 0}, {jmp | anyBit, 1, 0, 0x80000000}, {ret, 0, 0, 1}, {ret, 0, 0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Run(nil); got != 2 {
		t.Errorf("-1 has no sign: %d", got)
	}
}

func TestRefused(t *testing.T) {
	long := make([]Instruction, MaxLen+1)
	for i := range long {
		long[i] = Instruction{Code: ret}
	}
	end := Instruction{Code: ret}
	for what, list := range map[string][]Instruction{
		"nothing":                 {},
		"no end":                  {{ld | imm, 0, 0, 0}},
		"too long":                long,
		"a class without meaning": {{misc | 0x10, 0, 0, 0}, end},
		"a load of 8 bytes":       {{ld | sizeMask | abs, 0, 0, 0}, end},
		"what Linux adds":         {{ld | abs, 0, 0, 0xfffff000}, end},
		"a code of two bytes":     {{0x100, 0, 0, 0}, end},
		"a cell too many":         {{st, 0, 0, cells}, end},
		"a cell not written":      {{ld | mem, 0, 0, 0}, end},
		"one written on one way":  {{jmp | equal, 0, 1, 0}, {st, 0, 0, 0}, {ldx | mem, 0, 0, 0}, end},
		"a division by zero":      {{alu | div, 0, 0, 0}, end},
		"a shift of 32":           {{alu | lsh, 0, 0, 32}, end},
		"an operation too many":   {{alu | 0xb0, 0, 0, 0}, end},
		"a jump beyond the end":   {{jmp, 0, 0, 1}, end},
		"one if it is true":       {{jmp | equal, 1, 0, 0}, end},
		"one backwards":           {{jmp, 0, 0, 0xffffffff}, end},
		"to return X":             {{ret | fromX, 0, 0, 0}},
	} {
		if _, err := New(list); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// Every program that New accepts terminates.
func FuzzRun(f *testing.F) {
	f.Add([]byte{ret, 0, 0, 0, 0, 0, 0, 7}, packet)
	f.Fuzz(func(t *testing.T, code, packet []byte) {
		var list []Instruction
		for ; len(code) >= 8; code = code[8:] {
			list = append(list, Instruction{binary.LittleEndian.Uint16(code), code[2], code[3], binary.LittleEndian.Uint32(code[4:])})
		}
		if p, err := New(list); err == nil {
			p.Run(packet)
		}
	})
}

// Random programs terminate, too. New accepts more of them than of the fuzzer's programs.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	taken := 0
	for range 20_000 {
		var list []Instruction
		for range 1 + r.IntN(5) {
			list = append(list, Instruction{uint16(r.IntN(256)), uint8(r.IntN(3)), uint8(r.IntN(3)), uint32(r.IntN(40))})
		}
		if p, err := New(append(list, Instruction{Code: ret | fromA})); err == nil {
			taken++
			p.Run(packet)
		}
	}
	if taken == 0 {
		t.Errorf("seed %d: no program was taken", seed)
	}
}
