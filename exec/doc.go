// Package exec turns an executable file into a plan of an address space: the mappings, the initial stack, and the
// address of the first instruction. It corresponds to fs/binfmt_elf.c, fs/binfmt_script.c and fs/exec.c of Linux, and
// accepts and rejects the same files.
//
//	Resolve   follows `#!` lines to an ELF file
//	Parse     checks an ELF file's headers
//	Make      computes the plan, without side effects
//	Plan.Apply  makes the mappings in an empty mem.Map
//
// A File comes from an untrusted source. Parse checks it. Afterwards no header field can make arithmetic overflow: all
// addresses and sizes are below mem.End.
//
// PT_GNU_RELRO, PT_GNU_PROPERTY, PT_NOTE and section headers are ignored, as by Linux on x86-64; the dynamic loader
// applies RELRO itself. Without PT_GNU_STACK the stack is not executable, as for 64-bit programs since Linux 5.8.
//
// # Differences from Linux
//
// Linux may find an invalid program header only after it has removed the old program; it then kills the process. Here
// the plan is complete before anything is unmapped, so execve returns the same error and the old program continues.
package exec
