package usernet

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"loam/usernet/hand"
)

// handingOver returns a network whose gateway passes connections for port 80 to a
// program, the host address of the forward, and the program's socket.
func handingOver(t *testing.T, limits Limits) (*network, string, *net.UnixConn) {
	t.Helper()
	checkLeaks(t)
	ours, theirs := packetPair(t)
	n := newNetwork(t, Config{Limits: limits, Program: ours, Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}}})
	t.Cleanup(func() { theirs.Close() })
	theirs.SetDeadline(time.Now().Add(patience))
	return n, n.Forwards()[0].Host.String(), theirs
}

func packetPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var pair [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		pair[i] = c.(*net.UnixConn)
	}
	return pair[0], pair[1]
}

// taken returns a connection that the program has received.
func taken(t *testing.T, program *net.UnixConn) (hand.Connection, *net.TCPConn) {
	t.Helper()
	b, control := make([]byte, 100), make([]byte, 100)
	n, controls, _, _, err := program.ReadMsgUnix(b, control)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := hand.ParseConnection(b[:n])
	if !ok {
		t.Fatalf("a message of %d bytes", n)
	}
	list, err := syscall.ParseSocketControlMessage(control[:controls])
	if err != nil || len(list) != 1 {
		t.Fatalf("%d control messages, %v", len(list), err)
	}
	fds, err := syscall.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("descriptors %v, %v", fds, err)
	}
	f := os.NewFile(uintptr(fds[0]), "")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	return c, conn.(*net.TCPConn)
}

func sendEnds(t *testing.T, program *net.UnixConn, ends ...hand.End) {
	t.Helper()
	var b []byte
	for _, e := range ends {
		b = e.Append(b)
	}
	if _, err := program.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestHand(t *testing.T) {
	n, addr, program := handingOver(t, Limits{})
	host := dialHostPort(t, addr)
	c, conn := taken(t, program)
	if c.Port != 80 || c.Client < firstClient || c.Client > lastClient {
		t.Errorf("handed over as %+v", c)
	}
	if conn.RemoteAddr().String() != host.LocalAddr().String() {
		t.Errorf("the client is %s, not %s", conn.RemoteAddr(), host.LocalAddr())
	}
	send(t, conn, "hello")
	want(t, host, "hello")
	conn.Close()
	host.Close()
	sendEnds(t, program, hand.End{Client: c.Client, In: 3, Out: 5})
	n.wantCounter(PublishTCP, 1)
	n.wantCounter(PublishHanded, 1)
	n.wantCounter(TCPBytesIn, 3)
	n.wantCounter(TCPBytesOut, 5)
	n.wantCounter(PublishFailed, 0)
	n.wantCounter(TCPResets, 0)
}

// A descriptor passed to the program has the kernel's default options.
func TestHandedOptions(t *testing.T) {
	_, addr, program := handingOver(t, Limits{})
	host := dialHostPort(t, addr)
	defer host.Close()
	b, control := make([]byte, 100), make([]byte, 100)
	_, controls, _, _, err := program.ReadMsgUnix(b, control)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := syscall.ParseSocketControlMessage(control[:controls])
	fds, _ := syscall.ParseUnixRights(&list[0])
	defer syscall.Close(fds[0])
	for name, key := range map[string][2]int{"TCP_NODELAY": {syscall.IPPROTO_TCP, syscall.TCP_NODELAY}, "SO_KEEPALIVE": {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}} {
		if v, err := syscall.GetsockoptInt(fds[0], key[0], key[1]); v != 0 || err != nil {
			t.Errorf("%s: %d, %v", name, v, err)
		}
	}
}

// A handed-over connection counts against the connection limit until the program reports its end. A second report has
// no effect.
func TestHandedCountAmongTheConnections(t *testing.T) {
	n, addr, program := handingOver(t, Limits{Connections: 1})
	host := dialHostPort(t, addr)
	c, conn := taken(t, program)
	wantResetAt(t, addr)
	n.wantCounter(PublishLimit, 1)
	conn.Close()
	host.Close()
	sendEnds(t, program, hand.End{Client: c.Client + 1}) // reports the end of a connection that does not exist
	wantResetAt(t, addr)
	sendEnds(t, program, hand.End{Client: c.Client, Reset: true}, hand.End{Client: c.Client, Reset: true})
	n.wantCounter(TCPResets, 1)
	eventually(t, "the place is still taken", func() bool { return len(n.connections) == 0 })
	host = dialHostPort(t, addr)
	next, conn := taken(t, program)
	if next.Client == c.Client {
		t.Errorf("two connections in a row are of client %d", c.Client)
	}
	conn.Close()
	host.Close()
}

// If the program refuses a connection or has ended, the client's connection is reset.
func TestHandedToNobody(t *testing.T) {
	n, addr, program := handingOver(t, Limits{})
	host := dialHostPort(t, addr)
	c, conn := taken(t, program)
	conn.SetLinger(0)
	conn.Close()
	sendEnds(t, program, hand.End{Client: c.Client, Refused: true})
	n.wantCounter(PublishFailed, 1)
	host.Close()
	host = dialHostPort(t, addr)
	_, conn = taken(t, program)
	program.Close()
	eventually(t, "the program's connections count still", func() bool { return len(n.connections) == 0 })
	send(t, conn, "a connection stays without its gateway")
	want(t, host, "a connection stays without its gateway")
	conn.Close()
	host.Close()
	wantResetAt(t, addr)
	n.wantCounter(PublishFailed, 2)
}

// While the program reads no messages, clients wait. When it reads again, it receives all of their connections.
func TestHandedLate(t *testing.T) {
	n, addr, program := handingOver(t, Limits{})
	const many = 600 // more connections than the socket has room for
	for range many {
		defer dialHostPort(t, addr).Close()
	}
	for range many {
		c, conn := taken(t, program)
		conn.Close()
		sendEnds(t, program, hand.End{Client: c.Client})
	}
	n.wantCounter(PublishHanded, many)
	eventually(t, "places are taken", func() bool { return len(n.connections) == 0 })
}

// Closing a gateway does not affect connections passed to the program, and leaks nothing.
func TestHandingCloses(t *testing.T) {
	n, addr, program := handingOver(t, Limits{})
	host := dialHostPort(t, addr)
	_, conn := taken(t, program)
	n.Close()
	send(t, conn, "hello")
	want(t, host, "hello")
	conn.Close()
	host.Close()
}

// A forward to an address other than the program's is relayed.
func TestNotHanded(t *testing.T) {
	ours, theirs := packetPair(t)
	defer theirs.Close()
	n := newNetwork(t, Config{Program: ours, Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.16:80")}}})
	if err := n.guest.AddAddress("eth0", netip.MustParsePrefix("10.0.2.16/24")); err != nil {
		t.Fatal(err)
	}
	l := n.listenGuest()
	host := dialHostPort(t, n.Forwards()[0].Host.String())
	guest, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	send(t, guest, "hello")
	want(t, host, "hello")
	host.Close()
	n.wantCounter(PublishHanded, 0)
}
