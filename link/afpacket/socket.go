//go:build linux

package afpacket

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Packet sockets before they are bound: options have to be set first, since
// frames arrive from the moment of binding on.

// allProtocols is ETH_P_ALL in network byte order, as bind takes it.
const allProtocols = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8

// bufferSize is what a socket may hold of frames that nobody has read or that
// have not left, in bytes of the kernel's own accounting.
const bufferSize = 16 << 20

// newSocket makes a packet socket that receives nothing yet.
func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// The first of each takes CAP_NET_ADMIN, the second is cut to the limit of the
	// system: both are wishes.
	for _, option := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[0], bufferSize) != nil {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[1], bufferSize)
		}
	}
	return fd, nil
}

// option is one socket option of level SOL_PACKET.
type option struct {
	name  string // for the error
	value int
	to    int
	when  bool
}

func set(fd int, options ...option) error {
	for _, o := range options {
		if !o.when {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, o.value, o.to); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// bind ties the socket to the interface; with protocol 0 it only sends.
func bind(fd, index int, protocol uint16) error {
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}))
}

// receive has the socket take what the interface receives, its share if it is one
// of several in a group.
func receive(fd, index int, c Config, group *fanout) error {
	if c.Promiscuous {
		// The kernel counts who wants this, and forgets us with the socket.
		m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return os.NewSyscallError("promiscuous mode", err)
		}
	}
	if err := bind(fd, index, allProtocols); err != nil {
		return err
	}
	if c.Queues > 1 {
		return group.join(fd)
	}
	return nil
}

// fanout is a group of sockets that share what arrives, by flow.
type fanout struct {
	begun bool // there is a member
	id    int  // its number, of 16 bits; the first that the kernel gives after a boot is 0
}

// join adds a socket that receives. The first gets a number that the kernel knows
// to be free.
func (g *fanout) join(fd int) error {
	// A group does not look at PACKET_IGNORE_OUTGOING of its members.
	mode := unix.PACKET_FANOUT_HASH | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	if !g.begun {
		mode |= unix.PACKET_FANOUT_FLAG_UNIQUEID
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT, g.id|mode<<16); err != nil {
		return os.NewSyscallError("fanout", err)
	}
	if g.begun {
		return nil
	}
	v, err := unix.GetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_FANOUT)
	g.begun, g.id = true, v&0xffff
	return os.NewSyscallError("fanout", err)
}

// hasUSO reports whether the kernel takes UDP segments by the virtio-net header:
// from Linux 6.2 on.
func hasUSO() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 2
}
