package load

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"loam/test/bench/subject"
	"loam/wire"
)

// flood measures how far a flood of unwanted packets reduces the rate at which connections are opened
// and closed. The client's half runs on the kernel's stack, at the kernel's end of a link to the server
// (a tap or a veth), in a network namespace that it may reconfigure. It sends the flood by a packet
// socket and dials at the same time. The source addresses of the flood belong to the link, and no host
// answers at them.
//
// Samples: "quiet/s" and "flooded/s", connections per second without and with the flood; "share", the
// second as a percentage of the first; "kpps", the actual rate of the flood in 1000 packets per second.
type flood struct {
	connect
	kind string
}

// FloodKinds are the kinds of flood. The name of a load is Flood followed by one of them.
var FloodKinds = []string{"syn", "ack", "first-fragment", "later-fragment", "echo", "udp", "arp"}

// floodRate is the rate of a flood in packets per second.
const floodRate = 100_000

func (f flood) Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	if err := oneConnection(h, peer); err != nil { // the first connection also resolves the peer's address
		return nil, err
	}
	s, err := openStrangers(h.Addr(), peer)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s.socket)
	var quiet, flooded float64
	sent := 0
	for range floodRounds { // the two measurements alternate, because other load on the machine varies
		quiet += f.connect.during(h, peer, span/2) / floodRounds
		n, rate, err := s.during(f.kind, func() float64 { return f.connect.during(h, peer, span/2) })
		if err != nil {
			return nil, err
		}
		sent += n
		flooded += rate / floodRounds
	}
	return Samples{
		"quiet/s":   quiet,
		"flooded/s": flooded,
		"share":     100 * flooded / quiet,
		"kpps":      float64(sent) / (floodRounds * span / 2).Seconds() / 1000,
	}, nil
}

// floodRounds is the number of pairs of measurements, one without and one with the flood.
const floodRounds = 4

// during sends the flood while f runs. It returns the number of packets sent and the result of f.
func (s *strangers) during(kind string, f func() float64) (sent int, result float64, err error) {
	var sender sync.WaitGroup
	over := make(chan struct{})
	sender.Go(func() { sent, err = s.send(kind, over) })
	result = f()
	close(over)
	sender.Wait()
	return sent, result, err
}

// during returns the number of connections per second over a span. A connection that fails does not count. It does
// not wait for connections that are not complete at the end.
func (connect) during(h subject.Host, peer netip.Addr, span time.Duration) float64 {
	var done atomic.Int64
	end := time.Now().Add(span)
	for range dialers {
		go func() {
			for time.Now().Before(end) {
				if oneConnection(h, peer) == nil {
					done.Add(1)
				}
			}
		}()
	}
	time.Sleep(span)
	return float64(done.Load()) / span.Seconds()
}

// strangers sends packets from hosts that do not exist.
type strangers struct {
	socket   int
	us, them wire.MAC
	peer     netip.Addr
	n        uint32 // packets created
}

// openStrangers opens a packet socket on the device that leads to peer. It makes the kernel answer ARP
// requests for the strangers and drop packets sent to them.
func openStrangers(local, peer netip.Addr) (*strangers, error) {
	routes, err := netlink.RouteGet(peer.AsSlice())
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("flood: route to %v: %v", peer, err)
	}
	device, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return nil, err
	}
	if err := swallow(device.Attrs().Name); err != nil {
		return nil, err
	}
	s := &strangers{us: wire.MAC(device.Attrs().HardwareAddr), peer: peer}
	neighbours, err := netlink.NeighList(device.Attrs().Index, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	for _, n := range neighbours {
		if at, _ := netip.AddrFromSlice(n.IP.To4()); at == peer {
			s.them = wire.MAC(n.HardwareAddr)
		}
	}
	if s.them.IsZero() {
		return nil, fmt.Errorf("flood: %v is no neighbour of %v", peer, local)
	}
	if s.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, err
	}
	return s, unix.Bind(s.socket, &unix.SockaddrLinklayer{Ifindex: device.Attrs().Index})
}

// swallow makes the kernel drop packets to subject.StrangerNet: it routes them to one end of a veth without ARP
// whose other end discards them. On the named device it enables proxy ARP for subject.StrangerNet. A dummy
// device would be simpler, but not every kernel has them.
func swallow(name string) error {
	sink := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "sink0"}, PeerName: "sink1"}
	end := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "sink1"}}
	for _, err := range []error{netlink.LinkAdd(sink), netlink.LinkSetARPOff(sink), netlink.LinkSetUp(sink), netlink.LinkSetUp(end)} {
		if err != nil {
			return fmt.Errorf("flood: %w", err)
		}
	}
	dst, err := netlink.ParseIPNet(subject.StrangerNet.String())
	if err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{Dst: dst, LinkIndex: sink.Attrs().Index}); err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	for path, value := range map[string]string{
		"ipv4/ip_forward":                       "1",
		"ipv4/conf/" + name + "/proxy_arp":      "1",
		"ipv4/neigh/" + name + "/proxy_delay":   "0",
		"ipv4/conf/" + name + "/send_redirects": "0",
	} {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// send sends the flood in bursts, one per millisecond, until the channel over is closed.
// It returns the number of packets sent.
func (s *strangers) send(kind string, over <-chan struct{}) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var b [128]byte
	began, sent := time.Now(), 0
	for {
		select {
		case <-over:
			return sent, nil
		default:
		}
		for due := int(time.Since(began).Seconds() * floodRate); sent < due; sent++ {
			n := s.put(b[:], kind)
			switch _, err := unix.Write(s.socket, b[:n]); err {
			case nil, unix.ENOBUFS: // ENOBUFS: the device's queue is full; a flood does not wait for room
			default:
				return sent, fmt.Errorf("flood: %w", err)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// put writes the next packet to b and returns its length in bytes.
func (s *strangers) put(b []byte, kind string) int {
	s.n++
	src := subject.StrangerNet.Addr().As4()
	src[3] += byte(s.n % 126)
	from := netip.AddrFrom4(src)
	eth := wire.Ethernet{Dst: s.them, Src: s.us, Type: wire.TypeIPv4}
	if kind == "arp" {
		eth.Dst, eth.Type = wire.Broadcast, wire.TypeARP
		eth.Put(b)
		a := wire.ARP{Op: wire.ARPRequest, SenderMAC: s.us, SenderIP: from, TargetIP: s.peer}
		a.Put(b[wire.EthernetLen:])
		return wire.EthernetLen + wire.ARPLen
	}
	eth.Put(b)
	ip := wire.IPv4{ID: uint16(s.n), TTL: 64, Src: from, Dst: s.peer}
	payload := b[wire.EthernetLen+wire.IPv4MinLen:]
	sourcePort := uint16(1024 + s.n/126%60_000)
	switch kind {
	case "syn", "ack":
		h := wire.TCP{SrcPort: sourcePort, DstPort: port, Seq: s.n * 2654435761, Ack: s.n, Flags: wire.SYN, Window: 1000}
		if kind == "ack" {
			h.Flags = wire.ACK
		}
		h.Put(payload)
		ip.Protocol, ip.PayloadLen = wire.ProtoTCP, h.Len()
		wire.PutTCPChecksum(payload[:h.Len()], from, s.peer)
	case "echo":
		ip.Protocol, ip.PayloadLen = wire.ProtoICMP, wire.ICMPv4Len+32
		wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: s.n}.Put(payload)
		wire.PutICMPv4Checksum(payload[:ip.PayloadLen])
	default: // UDP to a closed port, complete or a fragment
		ip.Protocol, ip.PayloadLen = wire.ProtoUDP, wire.UDPLen+24
		h := wire.UDP{SrcPort: sourcePort, DstPort: 9, PayloadLen: 24}
		switch {
		case strings.HasPrefix(kind, "first"):
			ip.MoreFragment, h.PayloadLen = true, 1400
		case strings.HasPrefix(kind, "later"):
			ip.FragOffset = 1376
		}
		h.Put(payload)
		binary.BigEndian.PutUint16(payload[6:], 0) // no checksum
	}
	ip.Put(b[wire.EthernetLen:])
	return wire.EthernetLen + wire.IPv4MinLen + ip.PayloadLen
}
