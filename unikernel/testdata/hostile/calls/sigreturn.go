package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["sigreturn"] = trySigreturn }

// trySigreturn returns from a signal that was not there to the runtime's instruction, with registers for open(2).
func trySigreturn() {
	attack.Sigreturn(attack.String(attack.Mark))
}
