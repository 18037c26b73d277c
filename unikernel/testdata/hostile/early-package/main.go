// Command early-package makes a system call before any function of Go runs for it.
package main

import (
	_ "unsafe"
)

func early()

var _ = func() int { early(); return 0 }()

func main() {
}
