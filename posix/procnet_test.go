package posix

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// What /proc/net tells of a listener, a connection to it and a socket of UDP.
func TestProcNet(t *testing.T) {
	p := process(t)
	listener := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))
	ok(t, p.Bind(listener, localhost(0x1f90)))
	ok(t, p.Listen(listener, 1))
	client := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))
	ok(t, p.Connect(client, localhost(0x1f90)))
	server, _, errno := p.Accept4(listener, 0)
	ok(t, errno)
	datagrams := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	ok(t, p.Bind(datagrams, localhost(0x35)))
	port := p.Opened(client).file.(*tcpSocket).local().IP.Port()

	line := func(number int, local, peer string, state, inode int) string {
		return fmt.Sprintf("%4d: %s %s %02X 00000000:00000000 00:00000000 00000000     0        0 %d ", number, local, peer, state, inode)
	}
	here, there := "0100007F:1F90", fmt.Sprintf("0100007F:%04X", port)
	for name, want := range map[string][]string{
		"tcp": {line(0, here, "00000000:0000", linuxListen, listener), line(1, there, here, linuxEstablished, client), line(2, here, there, linuxEstablished, server)},
		"udp": {line(0, "0100007F:0035", "00000000:0000", linuxClose, datagrams)},
		"dev": {"    lo:    "}, "route": {"Iface\tDestination"}, "arp": {"IP address "}, "softnet_stat": {"00000000 "},
		"sockstat": {"sockets: used 4\nTCP: inuse 3 orphan 0 tw 0 alloc 3 mem 0\nUDP: inuse 1 mem 0\n"},
		"snmp":     {"Tcp: RtoAlgorithm RtoMin ", " CurrEstab ", "\nTcp: 1 200 120000 -1 1 1 0 0 2 "},
		"netstat":  {"TcpExt: ", "IpExt: InOctets OutOctets\n"},
	} {
		got := ProcNet[name](p)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("/proc/net/%s:\n%swithout %q", name, got, part)
			}
		}
	}
}

// A process without a network has the files all the same.
func TestProcNetOfNone(t *testing.T) {
	p := New(Options{})
	for name, text := range ProcNet {
		if got := text(p); got != "" && !strings.HasSuffix(got, "\n") {
			t.Errorf("/proc/net/%s: %q", name, got)
		}
	}
}
