// Package amd64 describes the x86-64 processor as a kernel uses it: instructions that Go cannot express, descriptor
// tables, page tables, the local APIC, and the devices of the original PC.
//
// Manuals: Intel 64 and IA-32 Architectures Software Developer's Manual ("SDM") volume 3, and AMD64 Architecture
// Programmer's Manual volume 2.
//
// The functions of instruction.go are written in assembly, which is assembled as part of package runtime
// (unikernel/overlay/_vm/runtime). The reason is that a folder which exists only in an overlay cannot contain assembly.
// So these functions are linked only into a guest. On a host, only the rest of the package can be used and tested.
package amd64
