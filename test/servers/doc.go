// Package servers runs servers that nobody here wrote, straight from their
// modules and unchanged, with "loam run", under load from clients that nobody
// here wrote either; and examples/web, which is ours. It has no code but tests.
//
// A server passes if its clients see no error for as long as the load lasts, and
// if it ends on Ctrl-C with the status that it has on Linux.
//
//	go test ./test/servers         the quick ones, a few seconds each
//	make vmservers                 all of them in virtual machines, ten minutes each, an hour in all; writes docs/servers-vm.md
//	make servers                   all of them, a minute each, and on Linux too; writes docs/servers.md
//
// What a server is, and which there are, is in servers_test.go; how one is
// started and ended in process_test.go; the clients, and how their reports are
// read, in load_test.go. Under the race detector there is nothing here: the
// servers and the loam command are programs of their own.
package servers
