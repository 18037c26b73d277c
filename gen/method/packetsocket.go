//go:build linux

package method

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// allProtocols is ETH_P_ALL in network byte order, as expected by bind(2).
const allProtocols = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8

// option is a socket option of level SOL_PACKET, with its value.
type option struct {
	name      string // name of the option, for error messages
	value, to int
}

// packetSocket opens a packet socket on c.Interface. With protocol 0, or a protocol that no frame has, the socket
// receives nothing.
func packetSocket(c Config, protocol uint16, options ...option) (fd int, err error) {
	index, err := interfaceIndex(c.Interface)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, explain(c, "packet socket", err)
	}
	wishSendBuffer(fd)
	for _, o := range options {
		if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, o.value, o.to); err != nil {
			unix.Close(fd)
			return -1, explain(c, o.name, err)
		}
	}
	if err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		unix.Close(fd)
		return -1, explain(c, "bind", err)
	}
	return fd, nil
}

func interfaceIndex(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("there is no interface %q: ip link lists those that there are", name)
	}
	return i.Index, nil
}

// readable waits until fd is readable or the timeout is over.
func readable(fd int, timeout time.Duration) error { return poll(fd, unix.POLLIN, timeout) }

// writable waits until fd is writable or the timeout is over.
func writable(fd int, timeout time.Duration) error { return poll(fd, unix.POLLOUT, timeout) }

func poll(fd int, events int16, timeout time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	_, err := unix.Poll(fds, int((timeout+time.Millisecond-1)/time.Millisecond))
	if err != nil && err != unix.EINTR {
		return os.NewSyscallError("poll", err)
	}
	return nil
}
