// Package amd64 knows the x86-64 processor as a kernel sees it: its instructions
// that Go has no words for, descriptor tables, page tables, the local APIC, and
// the few devices that every PC has had since 1981.
//
// Manuals: Intel 64 and IA-32 Architectures Software Developer's Manual ("SDM")
// volume 3, and AMD64 Architecture Programmer's Manual volume 2.
//
// The functions of instruction.go are written in assembly. It is assembled as
// part of package runtime (unikernel/overlay/_vm/runtime), because a folder that
// exists only in an overlay cannot hold assembly. So these functions link in a
// guest only; on a host, this package is for the tests of the rest.
package amd64
