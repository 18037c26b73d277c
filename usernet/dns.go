package usernet

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"loam/wire"
)

// The DNS forwarder, at Config.DNS port 53 by UDP and TCP. It keeps nothing: no
// cache, no state but the queries under way, each of which is a goroutine. A
// truncated answer is passed on as it is, and the guest asks again by TCP.
//
// What comes from the guest is parsed whole before anything is done about it;
// what comes from a server is too, before the guest gets it.

type dnsForwarder struct {
	config   *Config
	tally    *tally
	hostConf *resolvConf
	names    map[string]netip.Addr // see dnsnames.go
	queries  slots                 // under way
	wg       sync.WaitGroup        // queries and connections
}

func newDNSForwarder(c *Config, t *tally, hostConf *resolvConf) *dnsForwarder {
	return &dnsForwarder{
		config: c, tally: t, hostConf: hostConf, names: c.localNames(),
		queries: newSlots(c.Limits.Queries),
	}
}

// Types that ask for a whole zone: several messages by TCP, which is not
// forwarding any more (RFC 5936, RFC 1995).
const (
	dnsTypeIXFR wire.DNSType = 251
	dnsTypeAXFR wire.DNSType = 252
)

// reply answers one query; network is "udp" or "tcp". It returns nil for what
// gets no answer.
func (d *dnsForwarder) reply(ctx context.Context, network string, query []byte) []byte {
	d.tally.count(DNSQueries)
	m, err := wire.ParseDNS(query)
	switch {
	case len(query) < wire.DNSHeaderLen || m.Flags&wire.DNSResponse != 0:
		d.tally.count(DNSMalformed) // RFC 5625 section 4: an answer to an answer would go round for ever
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

// refuse answers a query that there is no room for.
func (d *dnsForwarder) refuse(query []byte) []byte {
	d.tally.count(DNSLimit)
	m, err := wire.ParseDNS(query)
	if err != nil || m.Flags&wire.DNSResponse != 0 {
		return nil
	}
	return m.AppendReply(nil, 0, wire.DNSServFail)
}

// datagramConn is the gateway's own UDP socket, or one of the host's in tests.
type datagramConn interface {
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
}

// maxQuery is the longest query by UDP that is looked at; they have a name and a
// few options in them.
const maxQuery = 4096

// serveUDP answers what arrives until the socket is closed.
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

func (d *dnsForwarder) send(c datagramConn, to netip.AddrPort, reply []byte) {
	if reply == nil {
		return
	}
	if _, err := c.WriteToUDPAddrPort(reply, to); err != nil {
		d.tally.count(DNSDropped)
	}
}

// Bounds on connections: how many there are, and how long one may take to send a
// query or to take an answer (RFC 7766 section 6.2.3 wants a few seconds).
const (
	maxDNSConns = 32
	dnsConnIdle = 10 * time.Second
)

// serveTCP answers what connections bring until the listener is closed.
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

func (d *dnsForwarder) replyTCP(ctx context.Context, query []byte) []byte {
	if !d.queries.take() {
		return d.refuse(query)
	}
	defer d.queries.give()
	return d.reply(ctx, "tcp", query)
}
