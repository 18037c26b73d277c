package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["memfd"] = tryMemfd }

// tryMemfd writes a program to a file in memory and executes it.
func tryMemfd() {
	for _, way := range attack.Ways {
		fd := way(319, attack.String("x"), 0, 0, 0, 0, 0)
		script := "#!/bin/sh\necho was here >" + attack.Mark + "\n"
		way(1, uintptr(fd), attack.String(script), uintptr(len(script)), 0, 0, 0)
		way(322, uintptr(fd), attack.String(""), attack.Words(attack.String("x"), 0), attack.Words(0), 0x1000, 0)
	}
}
