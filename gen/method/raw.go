//go:build linux

package method

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// openRaw opens the method raw. The caller writes the IP header. The kernel sends the packet to Config.Destination,
// whatever destination the header has (raw(7)). The kernel sets the header checksum; it also sets the identification if
// that is 0.
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
