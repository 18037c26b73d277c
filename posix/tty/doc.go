// Package tty implements pseudo-terminals (pty(7)), and the sessions and process groups that use them (credentials(7),
// tty_ioctl(4)). A terminal has a master, which /dev/ptmx creates, and any number of open slaves. Package terminal processes input
// and output.
//
// The package knows no processes: a call has its thread as a Caller, and signals are sent by Groups.
//
// job.go has these interfaces, session.go sessions and their controlling terminals, pty.go the open files of both ends, read.go
// reads that wait, and request.go the requests of ioctl_tty(2).
package tty
