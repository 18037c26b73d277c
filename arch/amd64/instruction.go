package amd64

import _ "unsafe" // for go:linkname

// One function an instruction. They are ordinary calls and cost a few
// nanoseconds. Those that are privileged fault outside of ring 0.

//go:linkname In8
func In8(port uint16) uint8

//go:linkname Out8
func Out8(port uint16, v uint8)

// Pause tells the CPU that this is a loop that waits.
//
//go:linkname Pause
func Pause()

// Halt stops the CPU until the next interrupt, which may never come.
//
//go:linkname Halt
func Halt()
