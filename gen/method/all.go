package method

import (
	"errors"
	"fmt"
	"strings"
)

// Method describes a way to send frames and, for some methods, to receive them.
type Method struct {
	Name, Summary string
	// Layer is the layer of the senders that Open returns.
	Layer Layer
	// Batch is the default number of frames that are passed to the sender in one call.
	Batch int
	Open  func(Config) (Sender, error)
	// Listen opens a receiver. It is nil if the method does not receive.
	Listen func(Config) (Receiver, error)
}

// largeBatch is the Batch of methods that make one system call per batch and in which this call does little work. With
// this size, the cost of the call per frame is negligible; a larger batch would only make the call last longer.
const largeBatch = 256

// longBatch is the Batch of the method xdp. In copy mode, its system call does all the work for a batch (on a veth,
// also the receiver's work), and other programs do not preempt it. On a busy machine, a frame then costs a tenth less
// than with a quarter of this batch. The call takes up to four milliseconds, the length of a tick of the kernel; it
// should not take longer.
const longBatch = 4096

// methods is the table of methods. They are ordered from the calls that programs usually make down to the device
// driver. Each method has a file with its name. Builds with the tag dpdk, which need cgo, add the method dpdk.
var methods = []Method{
	{"net", "a UDP connection of Go's package net, through its RawConn", Payload, DefaultBatch, openNet, nil},
	{"udp", "sendto(2) on a UDP socket, one call per datagram", Payload, DefaultBatch, openUDP, nil},
	{"mmsg", "sendmmsg(2) on a UDP socket, one call per batch; a message may hold several datagrams, which the kernel splits", Payload, largeBatch, openMmsg, nil},
	{"udpgso", "UDP_SEGMENT: a batch is one large datagram, which the kernel splits late", Payload, DefaultBatch, openGSO, nil},
	{"raw", "a raw IP socket with IP_HDRINCL, one call per packet", Packet, DefaultBatch, openRaw, nil},
	{"pcap", "a packet socket, used as by libpcap: one call per frame", Frame, DefaultBatch, openPcap, nil},
	{"packet", "AF_PACKET, one sendmmsg(2) per batch, bypassing the queueing discipline", Frame, DefaultBatch, openPacket, listenPacket},
	{"ring", "PACKET_MMAP: rings in memory that is shared with the kernel", Frame, largeBatch, openRing, listenRing},
	{"tc", "an eBPF program sends packets whose content is in memory shared with it", Frame, largeBatch, openTC, listenTC},
	{"xdp", "AF_XDP: rings in memory that is shared with the driver, bypassing the kernel's stack", Frame, longBatch, openXDP, listenXDP},
	{"tap", "a TAP interface: the kernel receives what is sent", Frame, DefaultBatch, openTap, nil},
	{"loam", "UDP sockets of Loam's own stack, over a packet socket", Payload, DefaultBatch, openLoam, nil},
}

// HasQdisc reports whether Config.Qdisc has an effect. A method for which it has none either always or never uses the
// interface's queueing discipline.
func (m Method) HasQdisc() bool { return m.Name == "packet" || m.Name == "ring" || m.Name == "loam" }

// HasPlain reports whether Config.Plain has an effect.
func (m Method) HasPlain() bool { return m.Name == "mmsg" }

// All returns the methods. The caller must not modify the slice.
func All() []Method { return methods }

// ErrUnknown is wrapped by the error of ByName.
var ErrUnknown = errors.New("there is no such method")

// ByName returns the method with the given name. The error wraps ErrUnknown and lists the names.
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
