package unikernel

import (
	"os"
	"slices"
	"strings"

	"loam/unikernel/image"
)

// knownTraps are functions with SYSCALL instructions that many programs have and
// that have been looked at, with what they are for.
var knownTraps = map[string]string{
	"golang.org/x/sys/unix.SyscallNoError":    "sync, umask, getpgrp: Loam has nothing to do for them",
	"golang.org/x/sys/unix.RawSyscallNoError": "getuid and its like, which do not wait",
}

// Traps names the functions of an image that have a SYSCALL instruction of their
// own, past the standard library. Loam serves it all the same, by a trap that takes
// some hundred times as long as a call. Those that are known are left out.
func Traps(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	names, err := image.Syscalls(data)
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".abi0") // the calling convention
	}
	return slices.DeleteFunc(names, func(name string) bool { return knownTraps[name] != "" }), nil
}
