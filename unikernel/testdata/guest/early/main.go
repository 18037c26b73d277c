// Command early uses sockets while packages are initialised: this one imports
// nothing that package net imports last, and its name sorts first.
package main

import (
	"example.com/guest/early/aaa"
	"example.com/guest/internal/check"
)

func main() {
	check.Equal(aaa.Message, "early", "what came through")
	check.That(aaa.FD >= 1<<24, "descriptor %d is not Loam's", aaa.FD)
	check.Done()
}
