// Package exec turns an executable file into a plan of an address space: what is mapped where, the
// initial stack, and the first instruction. It does for Loam what fs/binfmt_elf.c, fs/binfmt_script.c
// and fs/exec.c do for Linux, and is as strict and as lax.
//
//	Resolve   follows `#!` lines to an ELF file
//	Parse     checks an ELF file's headers
//	Make      computes the plan, without side effects
//	Plan.Apply  makes the mappings in an empty mem.Map
//
// A File is outside input and is checked here once. After Parse no field of a header can make
// arithmetic overflow: addresses and sizes are below mem.End.
//
// PT_GNU_RELRO, PT_GNU_PROPERTY, PT_NOTE and section headers are ignored, as Linux ignores them
// for this processor; the dynamic loader applies RELRO itself. Without PT_GNU_STACK the
// stack is not executable, as for 64-bit programs since Linux 5.8.
//
// # Differences from Linux
//
// On Linux a lying program header can be found after the old program is gone, and the process is killed.
// Here the plan is complete before anything is unmapped, so execve fails with the same error instead.
package exec
