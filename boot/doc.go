// Package boot defines how a guest is loaded and what is passed to it: the memory layout (layout.go), the monitor's
// description of the machine (pvh.go, multiboot.go, efi.go, mptable.go), and the loam command's description of the program
// (config.go, archives.go).
//
// Both the host and the guest use this package. On the host, unikernel/image prepares a program that a monitor can
// load, and the loam command writes the configuration. In the guest the kernel reads both before there is a heap. So
// functions for the guest do not allocate, and they return a Problem instead of an error.
//
// Everything that a monitor passes is validated here, once.
package boot

// Problem describes an error in the data that was passed to the guest. It is empty if there is no error. Its type is
// string because a Problem is created before package initialisation.
type Problem string
