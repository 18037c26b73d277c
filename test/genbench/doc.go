// Package genbench measures the packet engine beside its peers, in one run: every
// method of ours, trafgen, DPDK's testpmd over its software drivers, hping3, and
// bare loops in C of the same system calls. There is nothing in it to call.
//
//	go test ./test/genbench           once, briefly: can everything be measured?
//	make genbench                     in full, and docs/gen
//
// All send the same frame of 64 bytes over a veth pair, as fast as they can, on
// one processor; the far end is in another namespace and drops the frame as early
// as a kernel without help does, since it is to another address. What is told to
// the far end's interface is the figure: see package gen/bench.
//
// Read peer_test.go (who takes part), aim_test.go (what we want), bench_test.go
// (the run), report_test.go (docs/gen).
package genbench
