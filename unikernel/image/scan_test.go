package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"loam/unikernel/linked"
)

// The test has instructions of each form with their encodings, in Intel syntax.
func TestInstructionLength(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(`
90               nop
0f05             syscall
c3               ret
c20800           ret 8
488b0425000f0500 mov rax, [0x50f00]
8b05000f0500     mov eax, [rip+0x50f00]
48b80f05000000000000  mov rax, 0x50f
b80f050000       mov eax, 0x50f
66b80f05         mov ax, 0x50f
80c00f           add al, 15
83c005           add eax, 5
81c00f050000     add eax, 0x50f
f6c00f           test al, 15
f6d0             not al
f7c00f050000     test eax, 0x50f
66f7c00f05       test ax, 0x50f
f7d8             neg eax
e80f050000       call
eb0f             jmp short
0f850f050000     jne
ff24c50f050000   jmp [rax*8+0x50f]
6690             xchg ax, ax
0f1f440000       nop [rax+rax]
0f0b             ud2
0fa2             cpuid
0fc8             bswap eax
0fba2005         bt dword [rax], 5
660f3a0f0f05     palignr xmm1, [rdi], 5
660f38000f       pshufb xmm1, [rdi]
f30f6f0f         movdqu xmm1, [rdi]
660f70c00f       pshufd xmm0, xmm0, 15
c5f877           vzeroupper
c5fe6f0f         vmovdqu ymm1, [rdi]
c5fd70c00f       vpshufd ymm0, ymm0, 15
c4e37d460f05     vperm2i128 ymm1, ymm0, [rdi], 5
c4e27d000f       vpshufb ymm1, ymm0, [rdi]
62f1fe486f4701   vmovdqu64 zmm0, [rdi+64]
62f37d48250f05   vpternlogd zmm1, zmm0, [rdi], 5
f0480fb10f       lock cmpxchg [rdi], rcx
64488b042500000000  mov rax, fs:[0]
48a10f05000000000000 mov rax, [0x50f]
c8100001         enter 16, 1
`), "\n") {
		digits, name, _ := strings.Cut(line, " ")
		code, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if n := instructionLength(append(slices.Clone(code), bytes.Repeat([]byte{0x90}, 8)...)); n != len(code) {
			t.Errorf("%s: %d bytes, want %d", strings.TrimSpace(name), n, len(code))
		}
		if n := instructionLength(code[:len(code)-1]); n >= len(code) {
			t.Errorf("%s: %d bytes of %d", strings.TrimSpace(name), n, len(code)-1)
		}
	}
}

// Disassembling any function of a program, instruction by instruction, ends exactly at the function's end.
func TestInstructionsFit(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(built(t)))
	if err != nil {
		t.Fatal(err)
	}
	section := f.Section(".text")
	text, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	functions, err := linked.Functions(f, section.Addr)
	if err != nil || len(functions) < 1000 {
		t.Fatalf("%d functions, %v", len(functions), err)
	}
	for _, fn := range functions {
		for code := text[fn.Start:fn.End]; len(code) > 0; {
			n := instructionLength(code)
			if n == 0 {
				t.Errorf("%s: % x", fn.Name, code[:min(len(code), 16)])
				break
			}
			code = code[n:]
		}
	}
}

// The standard library and Loam contain no SYSCALL instruction, and the guest contains one of its own. Syscalls finds
// an instruction in each place where the test plants one, with and without the linker's symbols, which identify
// assembly functions.
func TestSyscalls(t *testing.T) {
	program := built(t)
	const own, victim = "main.controlOfChild", "main.nilPointer"
	expect := func(what string, want ...string) {
		if got, err := Syscalls(program); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	expect("as it is", own+".abi0")
	plantSyscall(t, program, victim)
	expect("with another", victim, own+".abi0")
	hideSymbols(program)
	expect("without symbols", victim, own)
	if _, err := Syscalls(program[:1000]); err == nil {
		t.Error("half a file has been read")
	}
	copy(program[bytes.Index(program, []byte("\x00.text\x00")):], "\x00.tixt\x00")
	if _, err := Syscalls(program); !errors.Is(err, ErrNotProgram) {
		t.Errorf("without text: %v", err)
	}
}

// plantSyscall writes a SYSCALL instruction to the start of a function.
func plantSyscall(t *testing.T, program []byte, name string) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	section := f.Section(".text")
	functions, err := linked.Functions(f, section.Addr)
	i := slices.IndexFunc(functions, func(fn linked.Function) bool { return fn.Name == name })
	if err != nil || i < 0 {
		t.Fatalf("there is no %s, %v", name, err)
	}
	copy(program[section.Offset+functions[i].Start:], syscallCode)
}

// hideSymbols removes the symbol table.
func hideSymbols(program []byte) {
	headers := program[40:48]
	at := uint64(headers[0]) | uint64(headers[1])<<8 | uint64(headers[2])<<16 | uint64(headers[3])<<24
	for range int(program[60]) | int(program[61])<<8 {
		if program[at+4] == byte(elf.SHT_SYMTAB) {
			program[at+4] = byte(elf.SHT_NULL)
		}
		at += sectionSize
	}
}
