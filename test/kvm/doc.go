// Package kvm tests virtual machines under Linux's KVM, on computers without KVM. It has no code but
// tests.
//
// QEMU emulates a computer whose processor has AMD's virtualisation. Debian's unmodified kernel runs on
// it with its KVM modules. Its first process (package first) starts QEMU again, now with KVM, and runs
// the program (package program) on Loam there. So everything between Loam and the processor is KVM as
// users have it: its interrupt controllers, its clock, its nested page tables, its exits. Only the
// processor below is emulated.
//
//	go test ./test/kvm -v                    two machines, half a minute
//	LOAM_KVM_ALL=1 go test ./test/kvm -v     four machines, with one CPU and with two
//
// The emulated processor hides XSAVE. With QEMU 7.2, a nested guest sets XCR0 without an exit to KVM, and KVM resets
// it at the next entry, so every guest loses vector registers. Without XSAVE, Loam's kernel saves vector registers
// with FXSAVE.
//
// Read kvm_test.go first, then first/main.go.
package kvm
