// Package netdevice has the interfaces of the stack as Linux programs see them: found by name or index, with the kinds and
// flags of Linux, and the requests of ioctl(2) about them (netdevice(7)).
package netdevice
