// Package unix implements Unix sockets (unix(7)). All their data stays in the program and bypasses the stack.
//
// The names of all bound sockets are in Names, which the processes of a system share. A socket does not know the process that
// created it: each call uses the IDs and the place in the file tree of its caller (socket.Caller).
package unix
