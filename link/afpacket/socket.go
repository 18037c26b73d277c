//go:build linux

package afpacket

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Packet sockets. All options must be set before a socket is bound, because frames arrive from the
// moment of binding.

// allProtocols is ETH_P_ALL in network byte order, as bind(2) expects it.
const allProtocols = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8

// bufferSize is the size of a socket's receive buffer and of its send buffer, in bytes as the
// kernel counts them.
const bufferSize = 16 << 20

// newSocket returns a packet socket that receives nothing until it is bound.
func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// Best effort: the first option of each pair requires CAP_NET_ADMIN, and the second is limited
	// by a system setting.
	for _, option := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[0], bufferSize) != nil {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, option[1], bufferSize)
		}
	}
	return fd, nil
}

// option is a socket option of level SOL_PACKET. The function set sets the option only if
// the field when is true.
type option struct {
	name  string // name of the option, for error messages
	value int
	to    int
	when  bool
}

// set sets those options whose condition holds.
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

// bind binds the socket to the interface. With protocol 0, the socket only sends.
func bind(fd, index int, protocol uint16) error {
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}))
}

// receive makes the socket receive the frames that arrive at the interface. With several queues, it
// joins the fanout group and receives its share.
func receive(fd, index int, c Config, group *fanout) error {
	if c.Promiscuous {
		// The kernel counts requests for promiscuous mode, and drops this one when the socket is
		// closed.
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

// fanout is a group of sockets to which the kernel distributes received frames by flow.
type fanout struct {
	begun bool // the fanout group has a member
	id    int  // number of the group, 16 bits; 0 is valid: the kernel assigns it to the first group after boot
}

// join adds a receiving socket to the group. The kernel assigns a free group number to the first
// one.
func (g *fanout) join(fd int) error {
	// The kernel ignores PACKET_IGNORE_OUTGOING of the members of a group, so the group needs the
	// flag.
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

// hasUSO reports whether the kernel accepts UDP segmentation in the virtio-net header: Linux 6.2 or
// later.
func hasUSO() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 2
}
