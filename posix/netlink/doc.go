// Package netlink implements netlink sockets (netlink(7)) of the protocols NETLINK_SOCK_DIAG (package
// posix/sockdiag) and NETLINK_ROUTE: requests that list interfaces,
// addresses, routes and neighbours of the stack (rtnetlink(7)). Programs cannot change them.
package netlink
