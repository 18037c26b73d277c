// Package handed implements TCP sockets whose connection belongs to the host.
//
// # Why they exist
//
// A program on Loam that runs as a process of Linux has a TCP/IP stack of its own. A client of a published port (loam run -p)
// connects to the host, whose TCP ends the connection anyway. If the gateway relayed it, each byte would pass through the
// host's TCP, the gateway, Loam's TCP in the gateway, a socket between two processes, and Loam's TCP in the program. So the
// gateway passes the descriptor of the host's connection to the process instead (usernet/hand), and this package makes it a
// socket of the program. A request then costs the calls that it costs on Linux. Decision 25 has the consequences and the
// alternatives.
//
// To the program such a socket looks like any other: it has addresses of Loam's network and comes from accept(2) of an ordinary
// listening socket. There are none in virtual machines, which have no descriptors of the host.
//
// # How a connection arrives
//
// Hand finds the listening socket (inet.Network.Listening) and offers the connection to it. The program's accept(2) takes the
// offer and gets a Socket, which inherits the options of the listening socket.
//
// # Reading order
//
// hand.go, tcp.go, option.go, input.go, withheld.go.
package handed
