package procnet

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
	"loam/stack/neigh"
)

// The files of /proc/net that monitoring programs read, in the formats of proc(5) and the kernel's
// source. Fields without a value in Loam are 0.

// View is the network as one process sees it.
type View struct {
	Net *stack.Stack // nil: the process has no network
	UID int32        // user ID of the process, which is shown as the owner of all sockets
	// Opened yields each open file description once, with one of its descriptors. The descriptor also
	// serves as the inode number of a socket (/proc/self/fd).
	Opened iter.Seq2[int, *file.Description]
}

// Files maps file names in /proc/net to functions that generate the content.
var Files = map[string]func(*View) string{
	"arp": (*View).procARP, "dev": (*View).procDev, "igmp": (*View).procIGMP, "igmp6": (*View).procIGMP6,
	"if_inet6": (*View).procIfInet6, "ipv6_route": (*View).procIPv6Route,
	"mcfilter": (*View).procMCFilter, "mcfilter6": (*View).procMCFilter6,
	"netstat": (*View).procNetstat, "route": (*View).procRoute, "snmp": (*View).procSNMP,
	"snmp6": (*View).procSNMP6, "sockstat": (*View).procSockstat, "sockstat6": (*View).procSockstat6, "softnet_stat": procSoftnet,
	"tcp": (*View).procTCP, "tcp6": (*View).procTCP6,
	"udp": procDatagrams[*inet.UDPSocket](false), "udp6": procDatagrams[*inet.UDPSocket](true),
	"udplite": procDatagrams[*inet.UDPLiteSocket](false), "udplite6": procDatagrams[*inet.UDPLiteSocket](true),
	"icmp": procDatagrams[*inet.PingSocket](false), "icmp6": procDatagrams[*inet.PingSocket](true),
	"raw": procDatagrams[*inet.RawSocket](false), "raw6": procDatagrams[*inet.RawSocket](true),
	"unix": fixed("Num       RefCount Protocol Flags    Type St Inode Path\n"),
}

func fixed(text string) func(*View) string { return func(*View) string { return text } }

// procDev lists the traffic of each interface.
func (p *View) procDev() string {
	var b strings.Builder
	b.WriteString("Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n")
	for _, i := range netdevice.All(p.Net) {
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
func (p *View) procRoute() string {
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%-127s\n", text) } // lines are padded to the length of Linux's
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
	if p.Net == nil {
		return b.String()
	}
	for _, r := range p.Net.Routes() {
		if r.Dst.Addr().Is6() {
			continue
		}
		add(p.routeInterface(r), r.Dst, r.Gateway, r.Metric, r.MTU)
	}
	for _, a := range p.Net.Addresses() {
		if a.Prefix.Addr().Is4() && !a.Prefix.Addr().IsLoopback() && !a.Prefix.IsSingleIP() {
			add(a.Interface, a.Prefix, netip.Addr{}, 0, 0)
		}
	}
	return b.String()
}

// routeInterface returns the name of the interface of a route. If the route names none, it is the interface whose network
// contains the gateway.
func (p *View) routeInterface(r stack.Route) string {
	if r.Interface != "" {
		return r.Interface
	}
	for _, a := range p.Net.Addresses() {
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
func (p *View) procARP() string {
	var b strings.Builder
	b.WriteString("IP address       HW type     Flags       HW address            Mask     Device\n")
	for _, i := range netdevice.All(p.Net) {
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

func (p *View) counters() (c stack.Counters) {
	if p.Net != nil {
		c = p.Net.Counters()
	}
	return c
}

// procSNMP lists those objects of RFC 4293, RFC 4022 and RFC 4113 that are counted, for IPv4.
func (p *View) procSNMP() string {
	six := p.countersIPv6()
	c := p.counters()
	for which, n := range six.All() {
		c[which] -= n
	}
	const noLimit = ^uint64(0) // MaxConn: -1 means no limit on connections
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
func (p *View) procNetstat() string {
	c := p.counters()
	var in, out uint64
	for _, i := range netdevice.All(p.Net) {
		d := i.Device().Stats()
		in, out = in+d.RxBytes, out+d.TxBytes
	}
	return snmpLines("TcpExt", []field{
		{"SyncookiesSent", c.Get(stack.TCPCookiesSent)}, {"SyncookiesFailed", c.Get(stack.TCPCookiesBad)},
		{"ListenOverflows", c.Get(stack.TCPBacklogFull)}, {"ListenDrops", c.Get(stack.TCPBacklogFull)},
		{"TCPTimeouts", c.Get(stack.TCPLossTimeouts)}, {"TCPLossProbes", c.Get(stack.TCPTailProbes)},
		{"TCPMTUPFail", c.Get(stack.TCPMTUProbesLost)}, {"TCPMTUPSuccess", c.Get(stack.TCPMTUProbes)},
		{"TCPOFOQueue", c.Get(stack.TCPOutOfOrder)}, {"TCPAbortOnTimeout", c.Get(stack.TCPTimeouts)},
		{"TCPFastOpenActive", c.Get(stack.TCPFastActive)}, {"TCPFastOpenActiveFail", c.Get(stack.TCPFastActiveFail)},
		{"TCPFastOpenPassive", c.Get(stack.TCPFastPassive)}, {"TCPFastOpenPassiveFail", c.Get(stack.TCPFastPassiveFail)},
		{"TCPFastOpenListenOverflow", c.Get(stack.TCPFastOverflow)}, {"TCPFastOpenCookieReqd", c.Get(stack.TCPFastRequests)},
		{"TCPFastOpenBlackhole", 0}, {"TCPFastOpenPassiveAltKey", c.Get(stack.TCPFastOlder)},
	}) + snmpLines("IpExt", []field{{"InOctets", in}, {"OutOctets", out}})
}

// procSoftnet lists one line for each CPU. All counters are 0.
func procSoftnet(*View) string {
	var b strings.Builder
	for cpu := range runtime.NumCPU() {
		b.WriteString(strings.Repeat("00000000 ", 12))
		fmt.Fprintf(&b, "%08x 00000000 00000000\n", cpu)
	}
	return b.String()
}

func (p *View) procSockstat() string {
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
func (p *View) countSockets() (c socketCounts) {
	for _, o := range p.Opened {
		if _, ok := o.File.(socket.Socket); ok {
			c.all++
		}
		switch s := o.File.(type) {
		case tcpFile:
			c.tcp[familyIndex(s)]++
		case *inet.UDPSocket:
			c.udp[familyIndex(s)]++
		case *inet.RawSocket:
			c.raw[familyIndex(s)]++
		}
	}
	return c
}

// familyIndex returns the index of a socket in the counts by family: 1 for IPv6 and 0 for IPv4.
func familyIndex(s interface{ IsInet6() bool }) int {
	if s.IsInet6() {
		return 1
	}
	return 0
}

// established counts connections for CurrEstab of RFC 4022.
func (p *View) established() (n int) {
	for _, o := range p.Opened {
		if s, ok := o.File.(tcpFile); ok {
			if state := s.State(); state == inet.StateEstablished || state == inet.StateCloseWait {
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

func (t *socketTable) add(local, peer socket.Address, state uint8, inode int) {
	endpoint := hexEndpoint
	if t.six {
		endpoint = hexEndpoint6
	}
	fmt.Fprintf(&t.text, "%4d: %s %s %02X 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 %016x 100 0 0 10 0\n",
		t.lines, endpoint(local), endpoint(peer), state, t.uid, inode, 0)
	t.lines++
}

// hexEndpoint formats an address and port. Only the port is in network byte order.
func hexEndpoint(a socket.Address) string {
	ip := a.IP.Addr().Unmap()
	if !ip.Is4() {
		ip = netip.IPv4Unspecified()
	}
	return fmt.Sprintf("%s:%s", hexAddr(ip), strings.ToUpper(hex.EncodeToString(binary.BigEndian.AppendUint16(nil, a.IP.Port()))))
}

// tcpFile is a TCP socket: of the stack, or a connection of the host.
type tcpFile interface {
	socket.Socket
	State() uint8
	IsInet6() bool
}

// header returns the column names. The columns are wider for IPv6.
func (t *socketTable) header() string {
	if t.six {
		return procSocketHeader6
	}
	return procSocketHeader
}

// procTCP and procTCP6 list the TCP sockets of a family that listen or are connected.
func (p *View) procTCP() string { return p.procTCPOf(false) }

func (p *View) procTCP6() string { return p.procTCPOf(true) }

func (p *View) procTCPOf(six bool) string {
	table := socketTable{uid: p.UID, six: six}
	for fd, o := range p.Opened {
		s, ok := o.File.(tcpFile)
		if !ok || s.IsInet6() != six || s.Local().IP.Port() == 0 {
			continue
		}
		if state := s.State(); state != inet.StateClose { // as on Linux, a socket that is only bound is not listed
			peer, _ := s.Peer()
			table.add(s.Local(), peer, state, fd)
		}
	}
	return table.header() + table.text.String()
}

// datagramFile is a datagram socket.
type datagramFile interface {
	socket.Socket
	IsInet6() bool
}

// DatagramState returns the state in which a datagram socket is shown: established if it is connected, or else closed.
func DatagramState(s socket.Socket) uint8 {
	if _, errno := s.Peer(); errno != 0 {
		return inet.StateClose
	}
	return inet.StateEstablished
}

// procDatagrams returns a function that lists the bound sockets of a type and a family.
func procDatagrams[T datagramFile](six bool) func(*View) string {
	return func(p *View) string {
		table := socketTable{uid: p.UID, six: six}
		for fd, o := range p.Opened {
			s, ok := o.File.(T)
			if !ok || s.IsInet6() != six || s.Local().IP.Port() == 0 {
				continue
			}
			peer, _ := s.Peer()
			table.add(s.Local(), peer, DatagramState(s), fd)
		}
		return table.header() + table.text.String()
	}
}

// members returns the groups of one IP version in ascending order. It adds the group to
// which every host belongs (the parameter everybody).
func members(list []stack.Membership, everybody netip.Addr) []stack.Membership {
	list = slices.DeleteFunc(list, func(m stack.Membership) bool { return m.Group.Is4() != everybody.Is4() })
	if i := slices.IndexFunc(list, func(m stack.Membership) bool { return m.Group == everybody }); i >= 0 {
		list[i].Users++
	} else {
		list = append(list, stack.Membership{Group: everybody, Users: 1, Answer: -1})
	}
	slices.SortFunc(list, func(a, b stack.Membership) int { return a.Group.Compare(b.Group) })
	return list
}

// ReportTimer returns a group's report timer as shown in /proc/net: whether it is running, and the remaining
// time in hundredths of a second.
func ReportTimer(m *stack.Membership) (running int, left int64) {
	if m.Answer < 0 {
		return 0, 0
	}
	return 1, int64(m.Answer / (10 * time.Millisecond))
}

// procIGMP generates /proc/net/igmp: the memberships of each interface. Groups are numbers in the
// machine's byte order.
func (p *View) procIGMP() string {
	var b strings.Builder
	b.WriteString("Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n")
	for _, i := range netdevice.All(p.Net) {
		groups := i.Groups()
		list := members(groups.Members, allHosts)
		fmt.Fprintf(&b, "%d\t%-10s: %5d %7s\n", i.Index(), i.Name(), len(list), fmt.Sprint("V", groups.IGMP))
		for _, m := range list {
			reporter := 0
			if m.Reporter {
				reporter = 1
			}
			running, left := ReportTimer(&m)
			fmt.Fprintf(&b, "\t\t\t\t%s %5d %d:%08X\t\t%d\n", hexAddr(m.Group), m.Users, running, left, reporter)
		}
	}
	return b.String()
}

// mentions returns the sources that filters on an interface contain, for one IP version and in ascending order.
func mentions(i *stack.Interface, four bool) []stack.SourceMention {
	list := slices.DeleteFunc(i.SourceMentions(), func(m stack.SourceMention) bool { return m.Group.Is4() != four })
	slices.SortFunc(list, func(a, b stack.SourceMention) int {
		return cmp.Or(a.Group.Compare(b.Group), a.Source.Compare(b.Source))
	})
	return list
}

// procMCFilter generates /proc/net/mcfilter: the sources that filters of sockets contain. For each source it shows how many
// filters include it and how many exclude it.
func (p *View) procMCFilter() string {
	var b strings.Builder
	b.WriteString("Idx Device        MCA        SRC    INC    EXC\n")
	for _, i := range netdevice.All(p.Net) {
		for _, m := range mentions(i, true) {
			group, source := m.Group.As4(), m.Source.As4()
			fmt.Fprintf(&b, "%3d %6.6s 0x%08x 0x%08x %6d %6d\n", i.Index(), i.Name(),
				binary.BigEndian.Uint32(group[:]), binary.BigEndian.Uint32(source[:]), m.Include, m.Exclude)
		}
	}
	return b.String()
}

// allHosts is the group of all hosts (RFC 1112 section 4).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})
