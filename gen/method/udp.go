//go:build linux

package method

import "golang.org/x/sys/unix"

// openUDP opens the method udp. It calls sendto(2) without an address on a connected socket. So the kernel looks up the
// route only once, not for each datagram.
func openUDP(c Config) (Sender, error) {
	c = c.WithDefaults()
	fd, err := connected(c, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	return newSingle(fd, Payload, c), nil
}
