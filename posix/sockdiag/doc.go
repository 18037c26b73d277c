// Package sockdiag answers the requests of sock_diag(7), by which ss reads the list of sockets: inet.go for TCP, UDP and raw
// sockets, unix.go for Unix sockets.
package sockdiag
