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
	if errno := p.isSocket(fd); errno != 0 {
		return errno
	}
	return netdevice.Request(p.net, request, arg)
}

// InterfaceList implements SIOCGIFCONF (netdevice(7)). It returns a struct ifreq for each IPv4 address. Errors: EBADF,
// ENOTTY if fd is not a socket.
func (p *Process) InterfaceList(fd int) ([]byte, Errno) {
	if errno := p.isSocket(fd); errno != 0 {
		return nil, errno
	}
	return netdevice.List(p.net), 0
}

// isSocket checks the descriptor of a request for sockets. Errors: EBADF, ENOTTY.
func (p *Process) isSocket(fd int) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, ok := o.File.(socket.Socket); !ok {
		return linux.ENOTTY
	}
	return 0
}
