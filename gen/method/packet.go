//go:build linux

package method

import (
	"golang.org/x/sys/unix"

	"loam/link/afpacket"
)

// openPacket opens the method packet: AF_PACKET, a batch by one sendmmsg(2), past
// the queueing discipline unless Config.Qdisc says otherwise.
func openPacket(c Config) (Sender, error) {
	c = c.WithDefaults()
	var options []option
	var protocol uint16
	if !c.Qdisc { // then nobody looks into the frames but the device
		options = append(options, option{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1})
		protocol = afpacket.Unassigned
	}
	fd, err := packetSocket(c, protocol, options...)
	if err != nil {
		return nil, err
	}
	return newBatched(fd, Frame, c), nil
}
