//go:build linux

package method

import "golang.org/x/sys/unix"

// openPcap opens the method pcap: what the kernel sees of a program that opens an
// interface with libpcap and calls pcap_inject. Libpcap has a packet socket for
// all protocols with a receive ring of version 3, since it always captures too,
// and sends a frame by one send(2), through the queueing discipline. The ring is
// what this way costs: everything that the interface receives is copied into it,
// and so it is here. What others send is not (pcap_setdirection(3PCAP), PCAP_D_IN):
// several queues would each get copies of all that the others send, and two be slower
// than one.
func openPcap(c Config) (Sender, error) {
	c = c.WithDefaults()
	fd, err := packetSocket(c, allProtocols,
		option{"PACKET_VERSION", unix.PACKET_VERSION, unix.TPACKET_V3},
		option{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1})
	if err != nil {
		return nil, err
	}
	// Libpcap's: 2 MB in blocks of 128 kB.
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
