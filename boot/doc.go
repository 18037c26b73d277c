// Package boot is how a guest is loaded and what it is given: where things lie
// in memory (layout.go), what the virtual machine monitor says about the machine
// (pvh.go, multiboot.go), and what the loam command says about the program (config.go).
//
// Both sides use it. On the host, unikernel/image prepares a program so that a
// monitor can load it, and the loam command writes the configuration. In the
// guest the kernel reads all of it, before there is a heap: what the guest calls
// here allocates nothing, and answers with a Problem and not with an error.
//
// All that a monitor says is checked here, once.
package boot

// Problem is what is wrong with what the guest was given; empty if nothing is.
// It is a string because it is made before package initialisation.
type Problem string
