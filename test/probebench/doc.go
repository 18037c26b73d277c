// Package probebench measures the prober beside zmap and masscan, in one run, over a
// namespace whose kernel answers for millions of addresses. There is nothing in it
// to call.
//
//	go test ./test/probebench         16,384 addresses: does everybody find them?
//	make probebench                   8,388,608 addresses, for some minutes, and docs/probe
//
// Each asks all of them as fast as it can. What counts is read elsewhere: how many
// probes came, and when the first and the last, from the interface at the far end;
// how many addresses were found, from the file that each writes, a line each, those
// that were not asked or are there twice left out.
//
// Read lab_test.go (the namespace), peer_test.go (who takes part), bound_test.go
// (what nobody can beat), bench_test.go (the
// run and what we want), report_test.go (docs/probe).
package probebench
