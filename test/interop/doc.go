// Package interop tests Loam's stack against the Linux kernel over a tap, and against programs of other
// projects: ping, curl, nginx, iperf3, dnsmasq, tshark, iPXE and others. It has no code but tests.
//
// All tests run in a network namespace that is created for the test process and removed with it
// (internal/netns). Here, package net is the kernel's stack, *stack.Stack is Loam's, and 10.77.0.0/16
// is used by nothing else. A lab (lab_test.go) is one Loam host and one tap; each test creates its own.
//
//	sudo go test ./test/interop                 a gibibyte in each direction, a thousand connections
//	sudo LOAM_INTEROP_FULL=1 go test ./test/interop   a gibibyte over the link with faults too, instead of 128 MiB
//	sudo go test -short ./test/interop          small sizes; with -race they are always small
//	sudo go test ./test/interop -run Window -v -pcap /tmp   keeps what tcpdump captured
//
// The rates that -v prints are for comparing one run with the next. test/bench measures.
//
// Read lab_test.go first, then host_test.go (one end of a lab) and program_test.go (running programs of
// other projects).
package interop
