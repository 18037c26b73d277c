//go:build linux

package method

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// openRaw opens the method raw: the caller writes the IP header, and the kernel routes the packet to
// Config.Destination regardless of the header (raw(7)). The kernel fills in the header checksum, and the
// identification if it is 0.
func openRaw(c Config) (Sender, error) {
	c = c.WithDefaults()
	c.Destination = withoutPort(c.Destination)
	c.Source = netip.AddrPort{} // the source is in the header
	fd, err := connected(c, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return nil, err
	}
	return newSingle(fd, Packet, c), nil
}
