//go:build linux

package method

import "golang.org/x/sys/unix"

// openPacket opens the method packet: AF_PACKET, a batch by one sendmmsg(2), past
// the queueing discipline unless Config.Qdisc says otherwise.
func openPacket(c Config) (Sender, error) {
	c = c.WithDefaults()
	var options []option
	if !c.Qdisc {
		options = append(options, option{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1})
	}
	fd, err := packetSocket(c, 0, options...)
	if err != nil {
		return nil, err
	}
	return newBatched(fd, Frame, c), nil
}
