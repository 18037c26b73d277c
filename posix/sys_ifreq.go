package posix

import (
	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/socket"
)

// IsInterfaceRequest reports whether InterfaceRequest supports a request of ioctl(2).
func IsInterfaceRequest(request int) bool { return netdevice.IsRequest(request) }

// InterfaceRequest implements ioctl(2) for the requests of netdevice(7) that return a property of an
// interface. arg is a struct ifreq. Errors: EBADF, ENOTTY if fd is not a socket, ENODEV,
// EADDRNOTAVAIL.
func (p *Process) InterfaceRequest(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ok := o.File.(socket.Socket); !ok {
		return linux.ENOTTY
	}
	return netdevice.Request(p.net, request, arg)
}
