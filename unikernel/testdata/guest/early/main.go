// Command early uses sockets while packages are initialised. Package aaa imports nothing of what package net needs, and
// its name sorts first, so it is initialised before package net.
package main

import (
	"example.com/guest/early/aaa"
	"example.com/guest/internal/check"
)

func main() {
	check.Equal(aaa.Message, "early", "what came through")
	check.Equal(aaa.FD, 4, "the second free descriptor")
	check.Done()
}
