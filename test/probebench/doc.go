// Package probebench compares the prober with zmap and masscan in one run, against a namespace whose
// kernel answers for millions of addresses. It has no code but tests.
//
//	go test ./test/probebench         16,384 addresses: do all probers find them?
//	make probebench                   8,388,608 addresses, for some minutes, and writes docs/probe
//
// Each prober probes all addresses as fast as it can. The figures do not come from the probers. The interface at the
// far end counts the probes and gives the times of the first and the last. The addresses found are counted in the
// prober's output file, one per line, without duplicates and addresses that were not probed.
//
// Read lab_test.go (the namespace), peer_test.go (the probers), bound_test.go (the upper bound),
// bench_test.go (the run and the aims), report_test.go (docs/probe).
package probebench
