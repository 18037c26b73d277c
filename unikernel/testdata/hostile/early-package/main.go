// Command early-package makes a system call before any of its Go functions runs.
package main

import (
	_ "unsafe"
)

func early()

var _ = func() int { early(); return 0 }()

func main() {
}
