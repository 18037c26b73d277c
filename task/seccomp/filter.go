// Package seccomp has the filters of system calls that a program sets for itself (seccomp(2)): their chains, checks and verdicts.
// A thread has a chain of filters, which its children and new programs inherit. A filter is not changed and never removed.
package seccomp

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/posix/bpf"
)

// Filter is one filter program, linked to the older filters of its chain. A nil Filter is the empty chain.
type Filter struct {
	older   *Filter
	program bpf.Program
	strict  bool // the chain is SECCOMP_MODE_STRICT, which has no program
	count   int  // number of filters in the chain
	cost    int  // number of instructions of all filters in the chain, plus overheadEach for each filter
}

// Bounds of a chain (Linux's kernel/seccomp.c).
const (
	mostFilterCost = 1 << 15
	overheadEach   = 4
	callDataSize   = 64 // size of struct seccomp_data in bytes
)

// Strict returns the chain for SECCOMP_MODE_STRICT: the thread may only read, write, exit, and return from signal handlers.
func Strict() *Filter { return &Filter{strict: true} }

// IsStrict reports whether the chain was returned by Strict.
func (f *Filter) IsStrict() bool { return f != nil && f.strict }

// StrictAllows reports whether a thread in strict mode may make a system call.
func StrictAllows(number uint64) bool {
	switch uint32(number) {
	case linux.SYS_READ, linux.SYS_WRITE, linux.SYS_EXIT, linux.SYS_RT_SIGRETURN:
		return true
	}
	return false
}

// Add returns the chain with one more program. Errors: EINVAL for a strict chain, ENOMEM for one that is too long.
func (f *Filter) Add(program bpf.Program) (*Filter, linux.Errno) {
	next := &Filter{older: f, program: program, count: 1, cost: len(program) + overheadEach}
	if f != nil {
		next.count, next.cost = f.count+1, next.cost+f.cost
	}
	switch {
	case f.IsStrict():
		return nil, linux.EINVAL
	case next.cost > mostFilterCost:
		return nil, linux.ENOMEM
	}
	return next, 0
}

// Instruction is the size of an instruction in bytes (struct sock_filter).
const Instruction = 8

// Parse decodes and checks a program. Errors: EINVAL.
func Parse(text []byte) (bpf.Program, linux.Errno) {
	le := binary.LittleEndian
	list := make([]bpf.Instruction, len(text)/Instruction)
	for i := range list {
		c := text[i*Instruction:]
		list[i] = bpf.Instruction{Code: le.Uint16(c), JT: c[2], JF: c[3], K: le.Uint32(c[4:])}
		if !allowed(list[i]) {
			return nil, linux.EINVAL
		}
	}
	program, err := bpf.New(list)
	if err != nil {
		return nil, linux.EINVAL
	}
	return program, 0
}

// Mode returns the mode as PR_GET_SECCOMP and /proc/PID/status show it, and the number of filters.
func (f *Filter) Mode() (mode, count int) {
	switch {
	case f == nil:
		return 0, 0
	case f.strict:
		return linux.SECCOMP_MODE_STRICT, 0
	}
	return linux.SECCOMP_MODE_FILTER, f.count
}

// Descends reports whether the list of filters that begins with top contains f. It is true for a nil f, which is no filter.
func (f *Filter) Descends(top *Filter) bool {
	if f == nil {
		return true
	}
	for ; top != nil; top = top.older {
		if top == f {
			return true
		}
	}
	return false
}

// allowed reports whether a filter of system calls may contain an instruction. It may only load whole words, and has no
// remainder operation.
func allowed(i bpf.Instruction) bool {
	const (
		load, loadX, alu      = 0, 1, 4
		class, mode, size, op = 7, 0xe0, 0x18, 0xf0
		absolute, indirect    = 0x20, 0x40
		shift                 = 0xa0 // addressing mode BPF_MSH
		modulo                = 0x90
	)
	switch i.Code & class {
	case load:
		if i.Code&mode == absolute && (i.K >= callDataSize || i.K%4 != 0) {
			return false
		}
		return i.Code&size == 0 && i.Code&mode != indirect
	case loadX:
		return i.Code&mode != shift
	case alu:
		return i.Code&op != modulo
	}
	return true
}

// Data encodes a struct seccomp_data for package bpf, which loads words in network byte order.
func Data(number uint64, f *amd64.Frame) []byte {
	be := binary.BigEndian
	b := make([]byte, 0, callDataSize)
	b = be.AppendUint32(b, uint32(number))
	b = be.AppendUint32(b, linux.AUDIT_ARCH_X86_64)
	for _, v := range [...]uint64{f.IP, f.DI, f.SI, f.DX, f.R10, f.R8, f.R9} {
		b = be.AppendUint32(b, uint32(v))
		b = be.AppendUint32(b, uint32(v>>32))
	}
	return b
}

// Verdict returns the action of the chain for a system call: the action with the highest precedence. If several filters
// return it, the value of the newest one counts.
func (f *Filter) Verdict(data []byte) uint32 {
	result := uint32(linux.SECCOMP_RET_ALLOW)
	for ; f != nil; f = f.older {
		r := f.program.Run(data)
		if int32(r&linux.SECCOMP_RET_ACTION_FULL) < int32(result&linux.SECCOMP_RET_ACTION_FULL) {
			result = r
		}
	}
	return result
}
