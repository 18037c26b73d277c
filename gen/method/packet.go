//go:build linux

package method

import (
	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/afpacket"
)

// openPacket opens the method packet: AF_PACKET with one sendmmsg(2) per batch. It bypasses the queueing discipline
// unless Config.Qdisc is set.
func openPacket(c Config) (Sender, error) {
	c = c.WithDefaults()
	var options []option
	var protocol uint16
	if !c.Qdisc { // without a queueing discipline, no part of the kernel needs the protocol of the frames
		options = append(options, option{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1})
		protocol = afpacket.Unassigned
	}
	if c.LeaveChecksum { // the kernel needs the protocol to find the offset of the checksum
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
