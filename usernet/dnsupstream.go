package usernet

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"loam/wire"
)

// Queries to the host's servers. A query is forwarded unchanged except for its identifier. The identifier is random,
// and each query has a socket of its own, whose port the host's kernel selects. So an attacker who forges replies must
// guess both numbers (RFC 5452 section 9).

var errNoAnswer = errors.New("usernet: no DNS server answered")

// rounds is the number of times that the list of servers is tried, as by default in resolv.conf(5).
const rounds = 2

// ask sends a query to the servers in turn; network is "udp" or "tcp". If a server does not answer in time, or replies
// that it cannot answer, ask tries the next server. If no server gives an answer, ask returns such a negative reply.
func (d *dnsForwarder) ask(ctx context.Context, network string, m *wire.DNS, query []byte) ([]byte, error) {
	for range rounds {
		var excuse []byte
		waited := false
		for _, server := range d.servers() {
			reply, err := d.askOne(ctx, network, server, m, query)
			switch {
			case err == nil && !isExcuse(reply):
				return reply, nil
			case err == nil:
				excuse = reply
			case isTimeout(err):
				waited = true
			}
			if ctx.Err() != nil {
				return nil, errNoAnswer
			}
		}
		if excuse != nil {
			return excuse, nil
		}
		if !waited { // every server refused immediately: a second round would give the same result
			break
		}
	}
	return nil, errNoAnswer
}

// isExcuse reports whether a reply has an error code by which a server states that it cannot answer.
func isExcuse(reply []byte) bool {
	switch wire.DNSRCode(reply[3] & 0xf) {
	case wire.DNSServFail, wire.DNSNotImp, wire.DNSRefused:
		return true
	}
	return false
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// servers returns the servers to ask, in order.
func (d *dnsForwarder) servers() []netip.AddrPort {
	if len(d.config.Resolvers) > 0 {
		return d.config.Resolvers
	}
	return d.hostConf.get().servers
}

// askOne sends a query to one server and returns its reply, with the guest's identifier.
func (d *dnsForwarder) askOne(ctx context.Context, network string, server netip.AddrPort, m *wire.DNS, query []byte) ([]byte, error) {
	dialer := net.Dialer{Deadline: time.Now().Add(d.config.dnsTimeout)}
	c, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(dialer.Deadline)
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	own := append([]byte(nil), query...)
	rand.Read(own[:2]) // the new identifier; rand.Read never fails
	exchange := d.exchangeUDP
	if network == "tcp" {
		exchange = d.exchangeTCP
	}
	reply, err := exchange(c, m, own)
	if err != nil {
		return nil, err
	}
	copy(reply[:2], query)
	return reply, nil
}

// exchangeUDP sends a query and waits for the matching reply. Other datagrams are counted and ignored. A correct server
// sends no reply that is longer than the guest accepts; such a reply is replaced by a truncated one.
func (d *dnsForwarder) exchangeUDP(c net.Conn, m *wire.DNS, query []byte) ([]byte, error) {
	if _, err := c.Write(query); err != nil {
		return nil, err
	}
	limit := m.UDPLimit()
	buf := make([]byte, limit+1)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil, err
		}
		if n > limit && d.beginsAnswer(m, query, buf) {
			d.tally.count(DNSTruncated)
			return m.AppendReply(nil, wire.DNSTruncated, wire.DNSNoError), nil
		}
		if n <= limit && d.answers(m, query, buf[:n]) {
			return buf[:n], nil
		}
		d.tally.count(DNSMismatched)
	}
}

// exchangeTCP sends a query over a connection and reads the reply. A reply that does not
// match is an error.
func (d *dnsForwarder) exchangeTCP(c net.Conn, m *wire.DNS, query []byte) ([]byte, error) {
	if err := writeDNS(c, query); err != nil {
		return nil, err
	}
	reply, err := readDNS(c)
	if err != nil {
		return nil, err
	}
	if !d.answers(m, query, reply) {
		d.tally.count(DNSMismatched)
		return nil, errNoAnswer
	}
	return reply, nil
}

// answers reports whether reply is a well-formed reply to query. m is the parsed query. RFC 5452 section 9.1 requires
// the same identifier and question. Addresses and ports need no check here, because the kernel compares them on a
// connected socket.
func (d *dnsForwarder) answers(m *wire.DNS, query, reply []byte) bool {
	r, err := wire.ParseDNS(reply)
	return err == nil && d.beginsAnswer(m, query, reply) && sameQuestion(&r.Question, &m.Question)
}

// beginsAnswer reports whether reply is long enough for a header, and whether the header is one of a reply with the
// query's identifier.
func (d *dnsForwarder) beginsAnswer(m *wire.DNS, query, reply []byte) bool {
	return len(reply) >= wire.DNSHeaderLen && reply[0] == query[0] && reply[1] == query[1] &&
		wire.DNSFlags(binary.BigEndian.Uint16(reply[2:]))&wire.DNSResponse != 0
}

// sameQuestion compares two questions. Names are compared without regard to case.
func sameQuestion(a, b *wire.DNSQuestion) bool {
	return a.Type == b.Type && a.Class == b.Class && a.Name.Lower() == b.Name.Lower()
}

// maxDNSMessage is the maximum length of a message over TCP, in bytes: its length prefix has two bytes.
const maxDNSMessage = 1<<16 - 1

// writeDNS sends a message and its length prefix (RFC 1035 section 4.2.2) in a single
// write (RFC 7766 section 8).
func writeDNS(w io.Writer, msg []byte) error {
	if len(msg) > maxDNSMessage {
		return wire.ErrLength
	}
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(msg)), uint16(len(msg)))
	_, err := w.Write(append(b, msg...))
	return err
}

// readDNS reads a message with a length prefix.
func readDNS(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, msg)
	return msg, err
}
