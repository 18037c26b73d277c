// Command early uses sockets while packages are initialised: this one imports
// nothing that package net imports last, and its name sorts first.
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
