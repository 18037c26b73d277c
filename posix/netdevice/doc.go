// Package netdevice presents the interfaces of the stack to Linux programs: lookup by name or index, Linux's types and flags
// of interfaces, and the requests of ioctl(2) about interfaces (netdevice(7)).
package netdevice
