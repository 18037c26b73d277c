package usernet

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"loam/wire"
)

// The DNS forwarder on Config.DNS, port 53, UDP and TCP. It has no cache. Its only state is the set of pending queries;
// each has a goroutine. A truncated reply is forwarded unchanged, and the guest repeats the query over TCP.
//
// A query from the guest is parsed completely before it is processed, and a reply from a server is parsed completely
// before it is forwarded.

// dnsForwarder answers the guest's DNS queries. Its methods are safe for concurrent use.
type dnsForwarder struct {
	config   *Config
	tally    *tally
	hostConf *resolvConf
	names    map[string]netip.Addr // addresses of local names: see dnsnames.go
	queries  slots                 // limit on pending queries
	wg       sync.WaitGroup        // counts goroutines that serve queries and connections
}

func newDNSForwarder(c *Config, t *tally, hostConf *resolvConf) *dnsForwarder {
	return &dnsForwarder{
		config: c, tally: t, hostConf: hostConf, names: c.localNames(),
		queries: newSlots(c.Limits.Queries),
	}
}

// Zone transfers are not forwarded, because they consist of several messages over TCP (RFC 5936, RFC 1995).
const (
	dnsTypeIXFR wire.DNSType = 251
	dnsTypeAXFR wire.DNSType = 252
)

// reply returns the reply to one query, or nil if the query gets no reply. network is
// "udp" or "tcp".
func (d *dnsForwarder) reply(ctx context.Context, network string, query []byte) []byte {
	d.tally.count(DNSQueries)
	m, err := wire.ParseDNS(query)
	switch {
	case len(query) < wire.DNSHeaderLen || m.Flags&wire.DNSResponse != 0:
		d.tally.count(DNSMalformed) // RFC 5625 section 4: replying to a reply could loop forever
		return nil
	case err != nil || m.Question.Name.IsZero():
		d.tally.count(DNSMalformed)
		return m.AppendReply(nil, 0, wire.DNSFormErr)
	case m.Flags.Opcode() != 0 || m.Question.Type == dnsTypeAXFR || m.Question.Type == dnsTypeIXFR:
		d.tally.count(DNSUnsupported)
		return m.AppendReply(nil, 0, wire.DNSNotImp)
	}
	if local := answerLocally(d.names, &m); local != nil {
		d.tally.count(DNSLocal)
		return local
	}
	reply, err := d.ask(ctx, network, &m, query)
	if err != nil {
		d.tally.count(DNSFailed)
		return m.AppendReply(nil, 0, wire.DNSServFail)
	}
	d.tally.count(DNSAnswered)
	return reply
}

// refuse returns the reply to a query when the limit of pending queries is reached.
func (d *dnsForwarder) refuse(query []byte) []byte {
	d.tally.count(DNSLimit)
	m, err := wire.ParseDNS(query)
	if err != nil || m.Flags&wire.DNSResponse != 0 {
		return nil
	}
	return m.AppendReply(nil, 0, wire.DNSServFail)
}

// datagramConn is a UDP socket of the gateway's stack, or of the host in tests.
type datagramConn interface {
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
}

// maxQuery is the maximum length of a query over UDP, in bytes. Real queries are far shorter: they have one name and a
// few options.
const maxQuery = 4096

// serveUDP answers queries until the socket is closed.
func (d *dnsForwarder) serveUDP(ctx context.Context, c datagramConn) {
	buf := make([]byte, maxQuery)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		query := append([]byte(nil), buf[:n]...)
		if !d.queries.take() {
			d.send(c, from, d.refuse(query))
			continue
		}
		d.wg.Go(func() {
			defer d.queries.give()
			d.send(c, from, d.reply(ctx, "udp", query))
		})
	}
}

// send sends a reply over UDP, unless it is nil.
func (d *dnsForwarder) send(c datagramConn, to netip.AddrPort, reply []byte) {
	if reply == nil {
		return
	}
	if _, err := c.WriteToUDPAddrPort(reply, to); err != nil {
		d.tally.count(DNSDropped)
	}
}

// Limits of TCP: the number of connections, and how long a connection may take to send a
// query or accept a reply (RFC 7766 section 6.2.3 suggests a few seconds).
const (
	maxDNSConns = 32
	dnsConnIdle = 10 * time.Second
)

// serveTCP serves connections until the listener is closed.
func (d *dnsForwarder) serveTCP(ctx context.Context, l net.Listener) {
	conns := newSlots(maxDNSConns)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !conns.take() {
			d.tally.count(DNSLimit)
			c.Close()
			continue
		}
		d.wg.Go(func() {
			defer conns.give()
			d.serveConn(ctx, c)
		})
	}
}

// serveConn answers the queries of one connection, one at a time.
func (d *dnsForwarder) serveConn(ctx context.Context, c net.Conn) {
	defer c.Close()
	for {
		c.SetDeadline(time.Now().Add(dnsConnIdle))
		query, err := readDNS(c)
		if err != nil {
			return
		}
		reply := d.replyTCP(ctx, query)
		if reply == nil {
			return
		}
		c.SetDeadline(time.Now().Add(dnsConnIdle))
		if writeDNS(c, reply) != nil {
			d.tally.count(DNSDropped)
			return
		}
	}
}

// replyTCP is like the method reply, for a query over TCP. It also enforces the limit on
// pending queries.
func (d *dnsForwarder) replyTCP(ctx context.Context, query []byte) []byte {
	if !d.queries.take() {
		return d.refuse(query)
	}
	defer d.queries.give()
	return d.reply(ctx, "tcp", query)
}
