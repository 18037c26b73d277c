// Package genbench compares the packet engine with other generators in one run: every method of Loam;
// trafgen; DPDK's testpmd with its software drivers; hping3; go-pktgen and wireblast if their
// sources are given (others_test.go); and plain loops in C that make the same system calls. It has no code but
// tests.
//
//	go test ./test/genbench           one short run, which checks that everything can be measured
//	make genbench                     in full, and writes docs/gen
//
// All generators send the same frame of 64 bytes over a veth pair, as fast as they can, on one processor. The far end
// is in another namespace. Its kernel drops the frame as early as it can on its own, because the frame has another
// destination address. The figure is the number of frames that the far end's interface counts: see package gen/bench.
//
// Read peer_test.go (the other generators), aim_test.go (the aims), bench_test.go (the run),
// report_test.go (docs/gen). pacing_test.go is about gaps at low rates.
package genbench
