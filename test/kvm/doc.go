// Package kvm holds the tests of virtual machines under Linux's KVM, for computers that
// have none. It has no code but tests.
//
// QEMU emulates a computer whose processor has AMD's virtualisation. Debian's kernel runs
// on it, as it is, with its modules of KVM; its first process (first) starts QEMU again,
// by KVM this time, and the program (program) on Loam there. So what lies between Loam and
// the bottom is KVM as users have it: its interrupt controllers, its clock, its nested page
// tables, its exits. Only the processor below is QEMU's.
//
//	go test ./test/kvm -v                    two machines, half a minute
//	LOAM_KVM_ALL=1 go test ./test/kvm -v     four, with one CPU and with two
//
// That processor hides XSAVE: a guest of QEMU 7.2's sets XCR0 without an exit to KVM,
// which sets it back at its next entry, and vector registers are lost, of any guest. The
// kernel saves them by FXSAVE there.
//
// Read kvm_test.go first, then first/main.go.
package kvm
