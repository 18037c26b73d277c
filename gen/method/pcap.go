//go:build linux

package method

import "golang.org/x/sys/unix"

// openPcap opens the method pcap, which behaves towards the kernel like a program that opens an interface with
// libpcap and calls pcap_inject. Because libpcap always captures too, it has a packet socket for all protocols with
// a receive ring of version 3. It sends each frame with one send(2), through the queueing discipline.
//
// The ring is the cost of this method: the kernel copies every received frame into it. Frames sent by other sockets
// are not copied (pcap_setdirection(3PCAP), PCAP_D_IN). Otherwise each queue would get copies of all frames of the
// other queues, and two queues would be slower than one.
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
