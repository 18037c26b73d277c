package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["sigreturn"] = trySigreturn }

// trySigreturn returns from a signal that was never delivered, to the runtime's SYSCALL instruction with registers for
// open(2).
func trySigreturn() {
	attack.Sigreturn(attack.String(attack.Mark))
}
