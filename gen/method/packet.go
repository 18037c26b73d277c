//go:build linux

package method

import (
	"golang.org/x/sys/unix"

	"loam/link"
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
	if c.LeaveChecksum { // the kernel has to know whose
		options = append(options, option{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR, 1})
		protocol = 0
	}
	fd, err := packetSocket(c, protocol, options...)
	if err != nil {
		return nil, err
	}
	if c.LeaveChecksum {
		return &checksumBatched{*newBatched(fd, Frame, c, link.VirtioHeaderLen)}, nil
	}
	return newBatched(fd, Frame, c, 0), nil
}
