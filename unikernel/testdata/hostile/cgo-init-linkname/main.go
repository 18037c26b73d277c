// Command cgo-init-linkname gives the runtime code to call by the variable _cgo_init, defined in Go by
// linkname.
package main

import _ "unsafe"

//go:linkname hook _cgo_init
var hook = &early

// early is the machine code that writes the mark: a pointer to it is no function, and faults where data
// cannot run; it must not be called at all.
var early = [...]byte{0xcc}

func main() {}
