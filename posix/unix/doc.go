// Package unix implements Unix sockets (unix(7)). All their data stays in the program and bypasses the stack.
//
// The names of all bound sockets are in Names, which the processes of a system share. A socket knows the process that
// created it only as an Owner.
package unix
