package usernet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"loam/wire"
)

// fakeServer is a DNS server on the loopback network, over UDP and TCP. For each query, answer returns the messages to
// send back.
type fakeServer struct {
	addr   netip.AddrPort
	udp    *net.UDPConn
	tcp    net.Listener
	answer func(network string, query []byte) [][]byte
	wg     sync.WaitGroup
}

func newFakeServer(t *testing.T, answer func(network string, query []byte) [][]byte) *fakeServer {
	t.Helper()
	s := &fakeServer{answer: answer}
	var err error
	for s.tcp == nil { // tries until it finds a port that is free for both protocols
		s.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		s.addr = s.udp.LocalAddr().(*net.UDPAddr).AddrPort()
		if s.tcp, err = net.Listen("tcp", s.addr.String()); err != nil {
			s.udp.Close()
		}
	}
	s.wg.Go(s.serveUDP)
	s.wg.Go(s.serveTCP)
	t.Cleanup(func() {
		s.udp.Close()
		s.tcp.Close()
		s.wg.Wait()
	})
	return s
}

func (s *fakeServer) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		for _, reply := range s.answer("udp", append([]byte(nil), buf[:n]...)) {
			s.udp.WriteToUDPAddrPort(reply, from)
		}
	}
}

func (s *fakeServer) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		if query, err := readDNS(c); err == nil {
			for _, reply := range s.answer("tcp", query) {
				writeDNS(c, reply)
			}
		}
		c.Close()
	}
}

// refusedPort returns an address of the loopback network without a listener.
func refusedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

const guestID = 0x1234

func query(t testing.TB, name string, kind wire.DNSType) []byte {
	t.Helper()
	n, err := wire.ParseDNSName(name)
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendDNSQuery(nil, guestID, &wire.DNSQuestion{Name: n, Type: kind, Class: wire.DNSClassIN})
}

// yes answers any address query with 192.0.2.80.
func yes(network string, q []byte) [][]byte {
	m, err := wire.ParseDNS(q)
	if err != nil {
		return nil
	}
	return [][]byte{m.AppendAnswer(nil, 0, 300, netip.MustParseAddr("192.0.2.80"))}
}

func silence(string, []byte) [][]byte { return nil }

// forwarderTo returns a DNS forwarder that asks the given servers. It has no gateway and no guest.
func forwarderTo(t testing.TB, resolvers ...netip.AddrPort) (*dnsForwarder, *tally) {
	t.Helper()
	c := &Config{
		Resolvers: resolvers, Hostname: "Alpha",
		Gateway: netip.MustParseAddr("10.0.2.2"), Guest: netip.MustParseAddr("10.0.2.15"),
		dnsTimeout: 50 * time.Millisecond, Limits: Limits{Queries: 4},
	}
	none := &resolvConf{path: filepath.Join(t.TempDir(), "none")}
	counts := new(tally)
	return newDNSForwarder(c, counts, none), counts
}

func parsed(t *testing.T, reply []byte) wire.DNS {
	t.Helper()
	m, err := wire.ParseDNS(reply)
	if err != nil {
		t.Fatalf("the reply % x: %v", reply, err)
	}
	if m.ID != guestID || m.Flags&wire.DNSResponse == 0 {
		t.Errorf("the reply has identifier %#x and flags %#x", m.ID, m.Flags)
	}
	return m
}

func wantAddr(t *testing.T, reply []byte, want string) {
	t.Helper()
	m := parsed(t, reply)
	got := "none"
	m.EachAnswer(func(r wire.DNSRecord) bool { got = r.Addr().String(); return false })
	if m.Flags.RCode() != wire.DNSNoError || got != want {
		t.Errorf("the answer is %s with code %d, want %s", got, m.Flags.RCode(), want)
	}
}

func wantCode(t *testing.T, reply []byte, want wire.DNSRCode) {
	t.Helper()
	if m := parsed(t, reply); m.Flags.RCode() != want {
		t.Errorf("the response code is %d, want %d", m.Flags.RCode(), want)
	}
}

func wantCount(t *testing.T, c *tally, which Counter, want uint64) {
	t.Helper()
	if got := c[which].Load(); got != want {
		t.Errorf("%v is %d, want %d", which, got, want)
	}
}

func TestDNSAnswerOfAServerIsPassedOn(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		d, counts := forwarderTo(t, newFakeServer(t, yes).addr)
		wantAddr(t, d.reply(t.Context(), network, query(t, "www.example", wire.DNSTypeA)), "192.0.2.80")
		wantCount(t, counts, DNSAnswered, 1)
	}
}

func TestDNSQueryIdentifiersAreUnpredictable(t *testing.T) {
	var mu sync.Mutex // guards the map seen
	seen := make(map[uint16]bool)
	s := newFakeServer(t, func(n string, q []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		seen[binary.BigEndian.Uint16(q)] = true
		return yes(n, q)
	})
	d, _ := forwarderTo(t, s.addr)
	for range 32 {
		wantAddr(t, d.reply(t.Context(), "udp", query(t, "www.example", wire.DNSTypeA)), "192.0.2.80")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 16 {
		t.Errorf("32 queries went on with %d identifiers", len(seen))
	}
}

func TestDNSAnswerThatFitsNoQuestionIsIgnored(t *testing.T) {
	forged := netip.MustParseAddr("203.0.113.66")
	s := newFakeServer(t, func(n string, q []byte) [][]byte {
		m, _ := wire.ParseDNS(q)
		good := m.AppendAnswer(nil, 0, 300, netip.MustParseAddr("192.0.2.80"))
		bad := m.AppendAnswer(nil, 0, 300, forged)
		otherID := append([]byte(nil), bad...)
		otherID[1]++
		otherName := append([]byte(nil), bad...)
		otherName[wire.DNSHeaderLen+1]++
		isQuery := append([]byte(nil), bad...)
		isQuery[2] &^= 0x80
		return [][]byte{otherID, otherName, isQuery, bad[:20], {}, good}
	})
	d, counts := forwarderTo(t, s.addr)
	wantAddr(t, d.reply(t.Context(), "udp", query(t, "www.example", wire.DNSTypeA)), "192.0.2.80")
	wantCount(t, counts, DNSMismatched, 5)
	wantCode(t, d.reply(t.Context(), "tcp", query(t, "www.example", wire.DNSTypeA)), wire.DNSServFail)
}

func TestDNSTruncationIsPassedOnAndTCPBringsTheRest(t *testing.T) {
	s := newFakeServer(t, func(network string, q []byte) [][]byte {
		if network == "tcp" {
			return yes(network, q)
		}
		m, _ := wire.ParseDNS(q)
		return [][]byte{m.AppendReply(nil, wire.DNSTruncated, wire.DNSNoError)}
	})
	d, _ := forwarderTo(t, s.addr)
	q := query(t, "www.example", wire.DNSTypeA)
	if m := parsed(t, d.reply(t.Context(), "udp", q)); m.Flags&wire.DNSTruncated == 0 {
		t.Error("the answer by UDP does not say that it is truncated")
	}
	wantAddr(t, d.reply(t.Context(), "tcp", q), "192.0.2.80")
}

func TestDNSAnswerLongerThanTheGuestTakesIsCut(t *testing.T) {
	s := newFakeServer(t, func(network string, q []byte) [][]byte {
		m, _ := wire.ParseDNS(q)
		many := make([]netip.Addr, 100)
		for i := range many {
			many[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		}
		return [][]byte{m.AppendAnswer(nil, 0, 300, many...)}
	})
	d, counts := forwarderTo(t, s.addr)
	reply := d.reply(t.Context(), "udp", query(t, "www.example", wire.DNSTypeA))
	if m := parsed(t, reply); m.Flags&wire.DNSTruncated == 0 || len(reply) > wire.MaxDNSByUDP {
		t.Errorf("the answer has %d bytes and flags %#x", len(reply), m.Flags)
	}
	wantCount(t, counts, DNSTruncated, 1)
}

func TestDNSNextServerIsQueriedAfterAFailure(t *testing.T) {
	good := newFakeServer(t, yes)
	fails := newFakeServer(t, func(_ string, q []byte) [][]byte {
		m, _ := wire.ParseDNS(q)
		return [][]byte{m.AppendReply(nil, 0, wire.DNSServFail)}
	})
	for name, first := range map[string]netip.AddrPort{
		"silent": newFakeServer(t, silence).addr, "not there": refusedPort(t), "failing": fails.addr,
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(name+" "+network, func(t *testing.T) {
				d, _ := forwarderTo(t, first, good.addr)
				wantAddr(t, d.reply(t.Context(), network, query(t, "www.example", wire.DNSTypeA)), "192.0.2.80")
			})
		}
	}
	t.Run("only one server, failing", func(t *testing.T) {
		d, counts := forwarderTo(t, fails.addr)
		wantCode(t, d.reply(t.Context(), "udp", query(t, "www.example", wire.DNSTypeA)), wire.DNSServFail)
		wantCount(t, counts, DNSAnswered, 1)
	})
}

func TestDNSWithoutAServerFailsAtOnce(t *testing.T) {
	d, counts := forwarderTo(t, refusedPort(t), refusedPort(t))
	d.config.dnsTimeout = time.Hour // this timeout must not expire
	wantCode(t, d.reply(t.Context(), "udp", query(t, "www.example", wire.DNSTypeA)), wire.DNSServFail)
	wantCode(t, d.reply(t.Context(), "tcp", query(t, "www.example", wire.DNSTypeA)), wire.DNSServFail)
	wantCount(t, counts, DNSFailed, 2)
}

func TestDNSQueriesEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newFakeServer(t, func(string, []byte) [][]byte { cancel(); return nil })
	d, _ := forwarderTo(t, s.addr)
	d.config.dnsTimeout = time.Hour
	wantCode(t, d.reply(ctx, "udp", query(t, "www.example", wire.DNSTypeA)), wire.DNSServFail)
}

func TestDNSQueriesThatAreNotForwarded(t *testing.T) {
	d, counts := forwarderTo(t, newFakeServer(t, yes).addr)
	ask := func(q []byte) []byte { return d.reply(t.Context(), "udp", q) }
	good := query(t, "www.example", wire.DNSTypeA)

	wantCode(t, ask(good[:len(good)-1]), wire.DNSFormErr)
	wantCode(t, ask(wire.AppendDNSQuery(nil, guestID, &wire.DNSQuestion{})), wire.DNSFormErr)
	if reply := ask(good[:11]); reply != nil {
		t.Errorf("less than a header is answered with % x", reply)
	}
	response := append([]byte(nil), good...)
	response[2] |= 0x80
	if reply := ask(response); reply != nil {
		t.Errorf("an answer is answered with % x", reply)
	}
	wantCount(t, counts, DNSMalformed, 4)

	update := append([]byte(nil), good...)
	update[2] |= 5 << 3
	wantCode(t, ask(update), wire.DNSNotImp)
	wantCode(t, ask(query(t, "example", dnsTypeAXFR)), wire.DNSNotImp)
	wantCount(t, counts, DNSUnsupported, 2)
}

func TestDNSNamesOfTheGateway(t *testing.T) {
	d, counts := forwarderTo(t, refusedPort(t))
	ask := func(name string, kind wire.DNSType) []byte { return d.reply(t.Context(), "udp", query(t, name, kind)) }
	wantAddr(t, ask("host.loam.internal", wire.DNSTypeA), "10.0.2.2")
	wantAddr(t, ask("GATEWAY.Loam.Internal.", wire.DNSTypeA), "10.0.2.2")
	wantAddr(t, ask("alpha.loam.internal", wire.DNSTypeA), "10.0.2.15")
	wantAddr(t, ask("host.loam.internal", wire.DNSTypeAAAA), "none")
	wantAddr(t, ask("loam.internal", wire.DNSTypeNS), "none")
	wantCode(t, ask("other.loam.internal", wire.DNSTypeA), wire.DNSNXDomain)
	wantCode(t, ask("a.host.loam.internal", wire.DNSTypeA), wire.DNSNXDomain)
	wantCount(t, counts, DNSLocal, 7)
	wantCode(t, ask("notloam.internal", wire.DNSTypeA), wire.DNSServFail)
}

// loopbackSocket returns a UDP socket of the host and a client connected to it.
func loopbackSocket(t *testing.T) (server, client *net.UDPConn) {
	t.Helper()
	server, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

func TestDNSQueriesAtOnceAreBounded(t *testing.T) {
	release := make(chan struct{}) // closed by the test, received by the server
	s := newFakeServer(t, func(n string, q []byte) [][]byte {
		<-release
		return yes(n, q)
	})
	d, counts := forwarderTo(t, s.addr)
	d.config.dnsTimeout = time.Hour
	server, client := loopbackSocket(t)
	done := make(chan struct{})
	go func() { d.serveUDP(t.Context(), server); close(done) }()

	const extra = 3
	buf := make([]byte, 512)
	for range d.config.Limits.Queries {
		client.Write(query(t, "www.example", wire.DNSTypeA))
	}
	for range extra {
		client.Write(query(t, "www.example", wire.DNSTypeA))
		n, err := client.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, buf[:n], wire.DNSServFail)
	}
	wantCount(t, counts, DNSLimit, extra)
	close(release)
	for range d.config.Limits.Queries {
		n, err := client.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		wantAddr(t, buf[:n], "192.0.2.80")
	}
	server.Close()
	<-done
	d.wg.Wait()
}

func TestDNSByTCP(t *testing.T) {
	d, counts := forwarderTo(t, newFakeServer(t, yes).addr)
	l := listen(t)
	done := make(chan struct{})
	go func() { d.serveTCP(t.Context(), l); close(done) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // one connection carries several queries
		if err := writeDNS(c, query(t, fmt.Sprintf("host%d.example", i), wire.DNSTypeA)); err != nil {
			t.Fatal(err)
		}
		reply, err := readDNS(c)
		if err != nil {
			t.Fatal(err)
		}
		wantAddr(t, reply, "192.0.2.80")
	}
	writeDNS(c, []byte("rubbish")) // an invalid message ends this connection only
	if _, err := readDNS(c); err == nil {
		t.Error("rubbish was answered")
	}
	c.Close()
	l.Close()
	<-done
	d.wg.Wait()
	wantCount(t, counts, DNSAnswered, 3)
}

func TestDNSConnectionsAreBounded(t *testing.T) {
	d, counts := forwarderTo(t, refusedPort(t))
	l := listen(t)
	done := make(chan struct{})
	go func() { d.serveTCP(t.Context(), l); close(done) }()
	var idle []net.Conn
	for range maxDNSConns + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	if _, err := readDNS(idle[maxDNSConns]); err == nil {
		t.Error("there is no bound on connections")
	}
	wantCount(t, counts, DNSLimit, 1)
	for _, c := range idle {
		c.Close()
	}
	l.Close()
	<-done
	d.wg.Wait()
}

// A name lookup of the guest's program is answered by a server of the host.
func TestDNSForTheGuest(t *testing.T) {
	server := newFakeServer(t, func(network string, q []byte) [][]byte {
		m, _ := wire.ParseDNS(q)
		switch {
		case m.Question.Type != wire.DNSTypeA:
			return [][]byte{m.AppendReply(nil, 0, wire.DNSNoError)}
		case network == "udp":
			return [][]byte{m.AppendReply(nil, wire.DNSTruncated, wire.DNSNoError)}
		}
		return yes(network, q)
	})
	n := newNetwork(t, Config{Resolvers: []netip.AddrPort{server.addr}})
	n.guest.SetDNS([]netip.Addr{n.config.DNS})
	for name, want := range map[string]string{"www.example.": "192.0.2.80", "host.loam.internal.": "10.0.2.2"} {
		addrs, err := n.guest.Resolver().LookupNetIP(ctx(t), "ip4", name)
		if err != nil || len(addrs) != 1 || addrs[0].Unmap().String() != want {
			t.Errorf("%s is %v, %v, want %s", name, addrs, err, want)
		}
	}
	n.wantCounter(DNSLocal, 1)
	var notFound *net.DNSError
	if _, err := n.guest.Resolver().LookupNetIP(ctx(t), "ip4", "nobody.loam.internal."); !errors.As(err, &notFound) || !notFound.IsNotFound {
		t.Errorf("a name that does not exist: %v", err)
	}
}

func FuzzDNSQuery(f *testing.F) {
	f.Add(query(f, "www.example", wire.DNSTypeA))
	f.Add(query(f, "host.loam.internal", wire.DNSTypeA))
	f.Add(query(f, "example", dnsTypeAXFR))
	d, _ := forwarderTo(f)
	ctx, cancel := context.WithCancel(f.Context())
	cancel() // with a cancelled context, the forwarder sends no query to a server
	f.Fuzz(func(t *testing.T, q []byte) {
		reply := d.reply(ctx, "udp", q)
		if reply == nil {
			return
		}
		r, err := wire.ParseDNS(reply)
		if err != nil || r.Flags&wire.DNSResponse == 0 || string(reply[:2]) != string(q[:2]) {
			t.Fatalf("% x is answered with % x: %v", q, reply, err)
		}
	})
}

func FuzzDNSAnswer(f *testing.F) {
	d, _ := forwarderTo(f)
	q := query(f, "www.example", wire.DNSTypeA)
	m, _ := wire.ParseDNS(q)
	f.Add(m.AppendAnswer(nil, 0, 300, netip.MustParseAddr("192.0.2.80")))
	f.Add(m.AppendReply(nil, wire.DNSTruncated, wire.DNSServFail))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if !d.answers(&m, q, reply) {
			return
		}
		r, err := wire.ParseDNS(reply)
		if err != nil || r.ID != m.ID || r.Question.Name.Lower() != m.Question.Name {
			t.Fatalf("% x is taken for an answer: %v", reply, err)
		}
		isExcuse(reply)
	})
}
