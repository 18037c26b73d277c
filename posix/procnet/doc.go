// Package procnet generates the files of /proc/net and /sys/class/net from the state of the stack and the open sockets of a
// process.
package procnet
