package unikernel

import (
	"net"
	"os"
	"syscall"
)

// If a program runs as a process, the gateway hands over the connections to its published TCP ports: it passes the
// host's socket to the program (usernet/hand). It relays their data instead if all packets are traced (--pcap), or if
// connections are to use Loam's own TCP (--relay).

// hands reports whether connections are handed over.
func (o *Network) hands(platform Platform) bool {
	tcp := false
	for _, f := range o.Forwards {
		tcp = tcp || f.Proto == "tcp"
	}
	return tcp && platform == Process && o.Trace == "" && !o.Relay
}

// openHanding creates the socket pair through which connections are handed over, and returns the gateway's end. It
// returns nil if connections are relayed.
func (n *network) openHanding(o *Network, platform Platform) (*net.UnixConn, error) {
	if !o.hands(platform) {
		return nil, nil
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, errorf("close some files or raise the limit (ulimit -n)", "%v", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "handing")
	defer ours.Close()
	n.config.HandedFrom6 = userGateway6
	n.config.Handed = n.give(os.NewFile(uintptr(fds[1]), "handed"))
	c, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
