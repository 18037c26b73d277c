package method

import (
	"errors"
	"fmt"
	"strings"
)

// Method is a way to send, and perhaps to receive.
type Method struct {
	Name, Summary string
	// Layer is that of the senders that Open returns.
	Layer Layer
	// Batch is how many frames are handed over at once where nobody says otherwise.
	Batch int
	Open  func(Config) (Sender, error)
	// Listen is nil for a method that does not receive.
	Listen func(Config) (Receiver, error)
}

// largeBatch is the Batch of methods whose one call a batch costs little for each
// frame: so many that it hardly counts. More no longer shows, and a system call is
// not to last long.
const largeBatch = 256

// longBatch is that of xdp, whose call in copy mode does all the work of a batch, on a
// veth the receiver's too, and is not interrupted by other programs: on a busy machine
// a frame of such a batch takes a tenth less than one of a quarter as many. The call takes
// up to four milliseconds, as long as a tick of the kernel, which is enough.
const longBatch = 4096

// methods is the table, in the order of the article: from what a program usually
// does down to what the driver does. Each method has a file of its name. One more,
// dpdk, is there in builds with that tag, which need cgo.
var methods = []Method{
	{"net", "net.Conn.Write, as any Go program sends", Payload, DefaultBatch, openNet, nil},
	{"udp", "sendto(2) on a UDP socket, one call a datagram", Payload, DefaultBatch, openUDP, nil},
	{"mmsg", "sendmmsg(2) on a UDP socket, one call a batch, of runs of datagrams", Payload, largeBatch, openMmsg, nil},
	{"udpgso", "UDP_SEGMENT: one call and one walk through the kernel a batch", Payload, DefaultBatch, openGSO, nil},
	{"raw", "a raw IP socket with IP_HDRINCL, one call a packet", Packet, DefaultBatch, openRaw, nil},
	{"pcap", "a packet socket as libpcap drives it, one call a frame", Frame, DefaultBatch, openPcap, nil},
	{"packet", "AF_PACKET, one sendmmsg(2) a batch, past the queueing discipline", Frame, DefaultBatch, openPacket, listenPacket},
	{"ring", "PACKET_MMAP: rings that are shared with the kernel", Frame, largeBatch, openRing, listenRing},
	{"tc", "a program in the kernel makes packets of memory that is shared with it", Frame, largeBatch, openTC, listenTC},
	{"xdp", "AF_XDP: memory that is shared with the driver, past the kernel's stack", Frame, longBatch, openXDP, listenXDP},
	{"tap", "a TAP interface: the kernel receives what is sent", Frame, DefaultBatch, openTap, nil},
	{"loam", "UDP sockets of Loam's own stack, over a packet socket", Payload, DefaultBatch, openLoam, nil},
}

// All lists the methods.
func All() []Method { return methods }

// ErrUnknown is in the error of ByName.
var ErrUnknown = errors.New("there is no such method")

// ByName finds a method.
func ByName(name string) (Method, error) {
	var names []string
	for _, m := range methods {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if name == "dpdk" {
		return Method{}, fmt.Errorf("method dpdk: %w in this build; it takes Debian's libdpdk-dev and go install -tags dpdk ./cmd/loam", ErrUnknown)
	}
	return Method{}, fmt.Errorf("method %q: %w; allowed: %s", name, ErrUnknown, strings.Join(names, ", "))
}
