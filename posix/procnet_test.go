package posix

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/posix/inet"
)

// /proc/net lists a listener, a connection to it, and a UDP socket.
func TestProcNet(t *testing.T) {
	p := process(t)
	listener := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(listener, localhost(0x1f90)))
	ok(t, p.Listen(listener, 1))
	client := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Connect(client, localhost(0x1f90)))
	server, _, errno := p.Accept4(listener, 0)
	ok(t, errno)
	datagrams := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(datagrams, localhost(0x35)))
	port := p.Opened(client).File.(*inet.TCPSocket).Local().IP.Port()

	line := func(number int, local, peer string, state, inode int) string {
		return fmt.Sprintf("%4d: %s %s %02X 00000000:00000000 00:00000000 00000000     0        0 %d ", number, local, peer, state, inode)
	}
	here, there := "0100007F:1F90", fmt.Sprintf("0100007F:%04X", port)
	for name, want := range map[string][]string{
		"tcp": {line(0, here, "00000000:0000", inet.StateListen, listener), line(1, there, here, inet.StateEstablished, client), line(2, here, there, inet.StateEstablished, server)},
		"udp": {line(0, "0100007F:0035", "00000000:0000", inet.StateClose, datagrams)},
		"dev": {"    lo:    "}, "route": {"Iface\tDestination"}, "arp": {"IP address "}, "softnet_stat": {"00000000 "},
		"sockstat":  {"sockets: used 4\nTCP: inuse 3 orphan 0 tw 0 alloc 3 mem 0\nUDP: inuse 1 mem 0\n"},
		"snmp":      {"Tcp: RtoAlgorithm RtoMin ", " CurrEstab ", "\nTcp: 1 200 120000 -1 1 1 0 0 2 "},
		"sockstat6": {"TCP6: inuse 0\nUDP6: inuse 0\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n"},
		"snmp6":     {"Ip6InReceives                   \t0\n", "\nIcmp6OutMLDv2Reports            \t0\nUdp6InDatagrams                 \t0\n"},
		"netstat":   {"TcpExt: ", "IpExt: InOctets OutOctets\n"},
	} {
		got := ProcNet[name](p)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("/proc/net/%s:\n%swithout %q", name, got, part)
			}
		}
	}
}

// Counters of IPv6 are separate from those of IPv4.
func TestProcSNMP6(t *testing.T) {
	p := process(t)
	a := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(a, Address{Family: linux.AF_INET6, IP: netip.MustParseAddrPort("[::1]:53")}))
	b := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.Connect(b, Address{Family: linux.AF_INET6, IP: netip.MustParseAddrPort("[::1]:53")}))
	_, errno := p.Write(b, make([]byte, 10))
	ok(t, errno)
	_, errno = p.Read(a, make([]byte, 10))
	ok(t, errno)
	const length = 40 + 8 + 10 // headers and payload
	for text, want := range map[string][]string{
		ProcNet["snmp6"](p):     {"Ip6InReceives", "1", "Ip6InDelivers", "1", "Ip6OutRequests", "1", "Ip6InOctets", fmt.Sprint(length), "Ip6OutOctets", fmt.Sprint(length), "Udp6InDatagrams", "1", "Udp6OutDatagrams", "1"},
		DevSNMP6("lo")(p):       {"ifIndex", "1", "Ip6InReceives", "1", "Ip6InOctets", fmt.Sprint(length), "Ip6OutRequests", "0"},
		ProcNet["sockstat6"](p): {"UDP6: inuse", "2", "TCP6: inuse", "0"},
		DevSNMP6("eth7")(p):     {},
	} {
		for i := 0; i < len(want); i += 2 {
			if !numberOf(text, want[i], want[i+1]) {
				t.Errorf("%s is not %s in\n%s", want[i], want[i+1], text)
			}
		}
	}
	snmp := ProcNet["snmp"](p)
	if !strings.Contains(snmp, "\nIp: 2 64 0 0 0 0 0 0 0 0 ") || !strings.Contains(snmp, "\nUdp: 0 0 0 0 ") {
		t.Errorf("/proc/net/snmp tells of IPv6:\n%s", snmp)
	}
	if got := ProcNet["sockstat"](p); !strings.Contains(got, "sockets: used 2\n") || !strings.Contains(got, "UDP: inuse 0 ") {
		t.Errorf("/proc/net/sockstat tells of IPv6:\n%s", got)
	}
}

// numberOf reports whether a line of text consists of a name and a number.
func numberOf(text, name, number string) bool {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && strings.TrimSpace(rest) == number {
			return true
		}
	}
	return false
}

// A process without a network has all files of /proc/net.
func TestProcNetOfNone(t *testing.T) {
	p := New(Options{})
	for name, text := range ProcNet {
		if got := text(p); got != "" && !strings.HasSuffix(got, "\n") {
			t.Errorf("/proc/net/%s: %q", name, got)
		}
	}
}
