//go:build linux

package method

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// openRaw opens the method raw: the caller writes the IP header, the kernel finds
// the way to Config.Destination, whatever the header says (raw(7)). It fills in an
// identification of 0 and the header checksum.
func openRaw(c Config) (Sender, error) {
	c = c.WithDefaults()
	// A raw socket has no ports.
	c.Destination = withoutPort(c.Destination)
	c.Source = netip.AddrPort{} // stands in the header
	fd, err := connected(c, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return nil, err
	}
	return newSingle(fd, Packet, c), nil
}
