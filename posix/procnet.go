package posix

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"net/netip"
	"runtime"
	"strings"

	"loam/posix/file"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/neigh"
)

// The files of /proc/net that monitoring programs read, in the formats of proc(5) and the kernel's
// source. Fields without a value in Loam are 0.

// ProcNet maps file names in /proc/net to functions that generate the content.
var ProcNet = map[string]func(*Process) string{
	"arp": (*Process).procARP, "dev": (*Process).procDev, "igmp": (*Process).procIGMP, "igmp6": (*Process).procIGMP6,
	"if_inet6": (*Process).procIfInet6, "ipv6_route": (*Process).procIPv6Route,
	"mcfilter": (*Process).procMCFilter, "mcfilter6": (*Process).procMCFilter6,
	"netstat": (*Process).procNetstat, "route": (*Process).procRoute, "snmp": (*Process).procSNMP,
	"snmp6": (*Process).procSNMP6, "sockstat": (*Process).procSockstat, "sockstat6": (*Process).procSockstat6, "softnet_stat": procSoftnet,
	"tcp": (*Process).procTCP, "tcp6": (*Process).procTCP6,
	"udp": procDatagrams[*udpSocket](false), "udp6": procDatagrams[*udpSocket](true),
	"icmp": procDatagrams[*pingSocket](false), "icmp6": procDatagrams[*pingSocket](true),
	"raw": procDatagrams[*rawSocket](false), "raw6": procDatagrams[*rawSocket](true),
	"unix": fixed("Num       RefCount Protocol Flags    Type St Inode Path\n"),
}

func fixed(text string) func(*Process) string { return func(*Process) string { return text } }

// procDev lists the traffic of each interface.
func (p *Process) procDev() string {
	var b strings.Builder
	b.WriteString("Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n")
	for _, i := range netdevice.All(p.net) {
		c := i.Device().Stats()
		fmt.Fprintf(&b, "%6s: %7d %7d %4d %4d    0     0          0         0 %8d %7d %4d %4d    0     0       0          0\n",
			i.Name(), c.RxBytes, c.RxFrames, c.RxErrors, c.RxDropped, c.TxBytes, c.TxFrames, c.TxErrors, c.TxDropped)
	}
	return b.String()
}

// Flags of routes (route(8)), and of neighbours (arp(7)).
const (
	routeUp, routeGateway, routeHost = 1, 2, 4
	arpComplete                      = 2
)

// procRoute lists the IPv4 routes, including those to directly connected networks.
func (p *Process) procRoute() string {
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%-127s\n", text) } // padded as on Linux
	line("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT")
	add := func(name string, dst netip.Prefix, gateway netip.Addr, metric, mtu int) {
		flags := routeUp
		if gateway.IsValid() {
			flags |= routeGateway
		} else {
			gateway = netip.IPv4Unspecified()
		}
		if dst.Bits() == 32 {
			flags |= routeHost
		}
		mask := ^uint32(0) << (32 - dst.Bits())
		line(fmt.Sprintf("%s\t%s\t%s\t%04X\t0\t0\t%d\t%s\t%d\t0\t0", name, hexAddr(dst.Masked().Addr()), hexAddr(gateway),
			flags, metric, hexAddr(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, mask)))), mtu))
	}
	if p.net == nil {
		return b.String()
	}
	for _, r := range p.net.Routes() {
		if r.Dst.Addr().Is6() {
			continue
		}
		add(p.routeInterface(r), r.Dst, r.Gateway, r.Metric, r.MTU)
	}
	for _, a := range p.net.Addresses() {
		if a.Prefix.Addr().Is4() && !a.Prefix.Addr().IsLoopback() && !a.Prefix.IsSingleIP() {
			add(a.Interface, a.Prefix, netip.Addr{}, 0, 0)
		}
	}
	return b.String()
}

// routeInterface returns the name of a route's interface. If the route has none, it is the interface
// whose network contains the gateway.
func (p *Process) routeInterface(r stack.Route) string {
	if r.Interface != "" {
		return r.Interface
	}
	for _, a := range p.net.Addresses() {
		if a.Prefix.Contains(r.Gateway) {
			return a.Interface
		}
	}
	return "*"
}

// hexAddr formats an IPv4 address as in /proc/net: as a number in the machine's byte order.
func hexAddr(a netip.Addr) string {
	four := a.As4()
	return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(four[:]))
}

// procARP lists the IPv4 neighbours.
func (p *Process) procARP() string {
	var b strings.Builder
	b.WriteString("IP address       HW type     Flags       HW address            Mask     Device\n")
	for _, i := range netdevice.All(p.net) {
		for _, n := range i.Neighbours() {
			if n.Addr.Is6() {
				continue
			}
			flags := 0
			if n.State != neigh.Incomplete && n.State != neigh.Negative {
				flags = arpComplete
			}
			fmt.Fprintf(&b, "%-16s 0x%-10x0x%-10x%-22s*        %s\n", n.Addr, 1, flags, n.MAC, i.Name())
		}
	}
	return b.String()
}

// field is a counter of /proc/net/snmp or netstat.
type field struct {
	name  string
	value uint64
}

// snmpLines returns the two lines of a protocol: names and values.
func snmpLines(protocol string, fields []field) string {
	names, numbers := protocol+":", protocol+":"
	for _, f := range fields {
		names += " " + f.name
		numbers += fmt.Sprint(" ", int64(f.value))
	}
	return names + "\n" + numbers + "\n"
}

func (p *Process) counters() (c stack.Counters) {
	if p.net != nil {
		c = p.net.Counters()
	}
	return c
}

// procSNMP lists those objects of RFC 4293, RFC 4022 and RFC 4113 that are counted, for IPv4.
func (p *Process) procSNMP() string {
	six := p.countersIPv6()
	c := p.counters()
	for which, n := range six.All() {
		c[which] -= n
	}
	const noLimit = ^uint64(0) // -1: no limit on connections
	return snmpLines("Ip", []field{
		{"Forwarding", 2}, {"DefaultTTL", 64}, {"InReceives", c.Get(stack.IPReceived)},
		{"InHdrErrors", c.Get(stack.IPMalformed) + c.Get(stack.IPChecksum)}, {"InAddrErrors", c.Get(stack.IPNotForUs) + c.Get(stack.IPMartian)},
		{"ForwDatagrams", 0}, {"InUnknownProtos", c.Get(stack.IPNoProtocol)}, {"InDiscards", 0}, {"InDelivers", c.Get(stack.IPDelivered)},
		{"OutRequests", c.Get(stack.IPSent)}, {"OutDiscards", 0}, {"OutNoRoutes", c.Get(stack.IPNoRoute)}, {"ReasmTimeout", 0},
		{"ReasmReqds", c.Get(stack.IPFragments)}, {"ReasmOKs", c.Get(stack.IPReassembled)}, {"ReasmFails", c.Get(stack.IPReassembly)},
		{"FragOKs", c.Get(stack.IPFragmented)}, {"FragFails", 0}, {"FragCreates", c.Get(stack.IPFragsSent)},
	}) + snmpLines("Icmp", []field{
		{"InMsgs", c.Get(stack.ICMPReceived)}, {"InErrors", c.Get(stack.ICMPMalformed)}, {"InCsumErrors", c.Get(stack.ICMPChecksum)},
		{"InEchos", c.Get(stack.ICMPEcho)}, {"InEchoReps", c.Get(stack.ICMPEchoReply)}, {"OutMsgs", c.Get(stack.ICMPSent)}, {"OutErrors", c.Get(stack.ICMPNoRoom)},
	}) + snmpLines("Tcp", []field{
		{"RtoAlgorithm", 1}, {"RtoMin", 200}, {"RtoMax", 120000}, {"MaxConn", noLimit},
		{"ActiveOpens", c.Get(stack.TCPActiveOpens)}, {"PassiveOpens", c.Get(stack.TCPPassiveOpens)}, {"AttemptFails", 0},
		{"EstabResets", c.Get(stack.TCPResets)}, {"CurrEstab", uint64(p.established())}, {"InSegs", c.Get(stack.TCPReceived)}, {"OutSegs", c.Get(stack.TCPSent)},
		{"RetransSegs", c.Get(stack.TCPRetransmits)}, {"InErrs", c.Get(stack.TCPMalformed)}, {"OutRsts", c.Get(stack.TCPResetsSent)},
		{"InCsumErrors", c.Get(stack.TCPChecksum)},
	}) + snmpLines("Udp", []field{
		{"InDatagrams", c.Get(stack.UDPReceived)}, {"NoPorts", c.Get(stack.UDPNoPort)}, {"InErrors", c.Get(stack.UDPMalformed)},
		{"OutDatagrams", c.Get(stack.UDPSent)}, {"RcvbufErrors", c.Get(stack.UDPOverflow)}, {"SndbufErrors", 0},
		{"InCsumErrors", c.Get(stack.UDPChecksum)}, {"IgnoredMulti", 0},
	})
}

// procNetstat lists Linux's extended counters.
func (p *Process) procNetstat() string {
	c := p.counters()
	var in, out uint64
	for _, i := range netdevice.All(p.net) {
		d := i.Device().Stats()
		in, out = in+d.RxBytes, out+d.TxBytes
	}
	return snmpLines("TcpExt", []field{
		{"SyncookiesSent", c.Get(stack.TCPCookiesSent)}, {"SyncookiesFailed", c.Get(stack.TCPCookiesBad)},
		{"ListenOverflows", c.Get(stack.TCPBacklogFull)}, {"ListenDrops", c.Get(stack.TCPBacklogFull)},
		{"TCPTimeouts", c.Get(stack.TCPLossTimeouts)}, {"TCPLossProbes", c.Get(stack.TCPTailProbes)},
		{"TCPOFOQueue", c.Get(stack.TCPOutOfOrder)}, {"TCPAbortOnTimeout", c.Get(stack.TCPTimeouts)},
	}) + snmpLines("IpExt", []field{{"InOctets", in}, {"OutOctets", out}})
}

// procSoftnet lists one line for each CPU. All counters are 0.
func procSoftnet(*Process) string {
	var b strings.Builder
	for cpu := range runtime.NumCPU() {
		b.WriteString(strings.Repeat("00000000 ", 12))
		fmt.Fprintf(&b, "%08x 00000000 00000000\n", cpu)
	}
	return b.String()
}

func (p *Process) procSockstat() string {
	c := p.countSockets()
	return fmt.Sprintf("sockets: used %d\nTCP: inuse %d orphan 0 tw 0 alloc %d mem 0\nUDP: inuse %d mem 0\n"+
		"UDPLITE: inuse 0\nRAW: inuse %d\nFRAG: inuse 0 memory 0\n", c.all, c.tcp[0], c.tcp[0]+c.tcp[1], c.udp[0], c.raw[0])
}

// socketCounts counts sockets: in total, and for each protocol by family (0: IPv4, 1: IPv6).
type socketCounts struct {
	all           int
	tcp, udp, raw [2]int
}

// countSockets counts the open sockets, each once, however many descriptors it has.
func (p *Process) countSockets() (c socketCounts) {
	for _, o := range p.opened() {
		if _, ok := o.File.(socket.Socket); ok {
			c.all++
		}
		switch s := o.File.(type) {
		case tcpFile:
			c.tcp[familyIndex(s)]++
		case *udpSocket:
			c.udp[familyIndex(s)]++
		case *rawSocket:
			c.raw[familyIndex(s)]++
		}
	}
	return c
}

// familyIndex returns 1 for an IPv6 socket and 0 for an IPv4 socket.
func familyIndex(s interface{ isInet6() bool }) int {
	if s.isInet6() {
		return 1
	}
	return 0
}

// opened yields each open file description once, with one of its descriptors. The descriptor also
// serves as the inode number of a socket (/proc/self/fd).
func (p *Process) opened() iter.Seq2[int, *file.Description] {
	return func(yield func(int, *file.Description) bool) {
		seen := map[*file.Description]bool{}
		for _, fd := range p.fds.List() {
			o := p.fds.Get(fd)
			if o == nil || seen[o] {
				continue
			}
			seen[o] = true
			if !yield(fd, o) {
				return
			}
		}
	}
}

// established counts connections for CurrEstab of RFC 4022.
func (p *Process) established() (n int) {
	for _, o := range p.opened() {
		if s, ok := o.File.(tcpFile); ok {
			if state := s.linuxState(); state == linuxEstablished || state == linuxCloseWait {
				n++
			}
		}
	}
	return n
}

const procSocketHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n"

const procSocketHeader6 = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// socketTable is the content of /proc/net/tcp, udp, tcp6 or udp6 without the header.
type socketTable struct {
	uid   int32
	six   bool
	lines int
	text  strings.Builder
}

func (t *socketTable) add(local, peer Address, state uint8, inode int) {
	endpoint := hexEndpoint
	if t.six {
		endpoint = hexEndpoint6
	}
	fmt.Fprintf(&t.text, "%4d: %s %s %02X 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 %016x 100 0 0 10 0\n",
		t.lines, endpoint(local), endpoint(peer), state, t.uid, inode, 0)
	t.lines++
}

// hexEndpoint formats an address and port. Only the port is in network byte order.
func hexEndpoint(a Address) string {
	ip := a.IP.Addr().Unmap()
	if !ip.Is4() {
		ip = netip.IPv4Unspecified()
	}
	return fmt.Sprintf("%s:%s", hexAddr(ip), strings.ToUpper(hex.EncodeToString(binary.BigEndian.AppendUint16(nil, a.IP.Port()))))
}

// tcpFile is a TCP socket of Loam or of the host.
type tcpFile interface {
	socket.Socket
	linuxState() uint8
	isInet6() bool
}

// header returns the column names. The columns are wider for IPv6.
func (t *socketTable) header() string {
	if t.six {
		return procSocketHeader6
	}
	return procSocketHeader
}

// procTCP and procTCP6 list the bound TCP sockets of a family.
func (p *Process) procTCP() string { return p.procTCPOf(false) }

func (p *Process) procTCP6() string { return p.procTCPOf(true) }

func (p *Process) procTCPOf(six bool) string {
	table := socketTable{uid: p.credentials.UID, six: six}
	for fd, o := range p.opened() {
		s, ok := o.File.(tcpFile)
		if !ok || s.isInet6() != six || s.Local().IP.Port() == 0 {
			continue
		}
		peer, _ := s.Peer()
		table.add(s.Local(), peer, s.linuxState(), fd)
	}
	return table.header() + table.text.String()
}

// linuxState returns the state of the socket in Linux's numbering.
func (s *tcpSocket) linuxState() uint8 {
	if s.listener.Load() != nil {
		return linuxListen
	}
	return linuxStates[s.info().State]
}

// datagramFile is a datagram socket.
type datagramFile interface {
	socket.Socket
	isInet6() bool
}

// procDatagrams returns a function that lists the bound sockets of a type and a family. A connected
// socket is shown as established, any other as closed.
func procDatagrams[T datagramFile](six bool) func(*Process) string {
	return func(p *Process) string {
		table := socketTable{uid: p.credentials.UID, six: six}
		for fd, o := range p.opened() {
			s, ok := o.File.(T)
			if !ok || s.isInet6() != six || s.Local().IP.Port() == 0 {
				continue
			}
			peer, errno := s.Peer()
			state := uint8(linuxClose)
			if errno == 0 {
				state = linuxEstablished
			}
			table.add(s.Local(), peer, state, fd)
		}
		return table.header() + table.text.String()
	}
}
