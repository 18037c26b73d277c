package unikernel

import (
	"slices"
	"strings"

	"loam/unikernel/image"
)

// knownTraps lists functions with SYSCALL instructions that many programs contain, and for each the reason
// why the slow trap does not matter.
var knownTraps = map[string]string{
	"golang.org/x/sys/unix.SyscallNoError":    "sync, umask, getpgrp: Loam has nothing to do for them",
	"golang.org/x/sys/unix.RawSyscallNoError": "getuid and its like, which do not wait",
}

// Traps returns the functions outside the standard library whose code in a program has a SYSCALL
// instruction. Loam serves it with a trap, which takes some hundred times as long as a call. Functions in
// knownTraps are omitted.
func Traps(data []byte) ([]string, error) {
	names, err := image.Syscalls(data)
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".abi0") // removes the suffix of the calling convention
	}
	return slices.DeleteFunc(names, func(name string) bool { return knownTraps[name] != "" }), nil
}
