// Package servers runs servers of other projects, directly from their modules and unchanged, with "loam
// run", under load from clients of other projects. It also runs examples/web, which is part of this
// tree. It has no code but tests.
//
// A server passes if its clients see no error during the whole load, and if it exits on Ctrl-C with the
// same status as on Linux.
//
//	go test ./test/servers         the quick ones, a few seconds each
//	make vmservers                 all of them in virtual machines, ten minutes each, an hour in all; writes docs/servers-vm.md
//	make servers                   all of them, a minute each, and on Linux too; writes docs/servers.md
//
// The list of servers is in servers_test.go, starting and ending them in process_test.go, and the
// clients with their reports in load_test.go. With the race detector, no test runs: the servers and the
// loam command are separate programs.
package servers
