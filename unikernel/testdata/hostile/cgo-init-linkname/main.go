// Command cgo-init-linkname gives the runtime code to call by the variable _cgo_init, defined in Go by
// linkname.
package main

import _ "unsafe"

//go:linkname hook _cgo_init
var hook = &early

// early must not be called. It stands for machine code that creates Mark, but it is data: where data is not executable,
// a call of it faults.
var early = [...]byte{0xcc}

func main() {}
