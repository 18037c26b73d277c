//go:build linux

package method

import "golang.org/x/sys/unix"

// openPcap opens the method pcap. To the kernel, it looks like a program that opens an interface with libpcap and calls
// pcap_inject. libpcap always captures, too. So the method has a packet socket for all protocols, with a receive ring
// of version 3, and sends each frame by one send(2) through the queueing discipline.
//
// The receive ring is the cost of this method, because the kernel copies every received frame into it. Frames that
// other sockets send are not copied (pcap_setdirection(3PCAP), PCAP_D_IN). If they were, each queue would get copies of
// the frames that the other queues send, and two queues would be slower than one.
func openPcap(c Config) (Sender, error) {
	c = c.WithDefaults()
	fd, err := packetSocket(c, allProtocols,
		option{"PACKET_VERSION", unix.PACKET_VERSION, unix.TPACKET_V3},
		option{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1})
	if err != nil {
		return nil, err
	}
	// The size that libpcap uses: 2 MB in blocks of 128 kB.
	req := unix.TpacketReq3{
		Block_size: 128 << 10, Block_nr: 16,
		Frame_size: 2048, Frame_nr: 16 * (128 << 10) / 2048, Retire_blk_tov: 1,
	}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		unix.Close(fd)
		return nil, explain(c, "PACKET_RX_RING", err)
	}
	return newSingle(fd, Frame, c), nil
}
