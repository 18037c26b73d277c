// Package interop holds tests of Loam's stack against the Linux kernel, over a
// tap, and against programs that nobody here wrote: ping, curl, nginx,
// iperf3, dnsmasq, tshark, iPXE and others. It has no code but tests.
//
// All of it runs in a network namespace that is made for the test process and
// goes away with it (internal/netns), so here package net is the kernel's stack
// and *stack.Stack is ours, and 10.77.0.0/16 is used by nobody else. A lab
// (lab_test.go) is one Loam host and one tap; each test makes its own.
//
//	sudo go test ./test/interop                 a gibibyte each way, a thousand connections
//	sudo LOAM_INTEROP_FULL=1 go test ./test/interop   the same over a link with faults, where it is 128 MiB otherwise
//	sudo go test -short ./test/interop          small sizes; under -race they are always small
//	sudo go test ./test/interop -run Window -v -pcap /tmp   and keep what tcpdump saw
//
// The rates that -v shows are for comparing one run with the next; test/bench
// measures.
//
// Read lab_test.go first, then host_test.go (one end of a lab) and
// program_test.go (how other people's programs are run).
package interop
