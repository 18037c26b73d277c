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

// Asking the host's servers. A query goes on as the guest made it, but for its
// identifier: that and the port of a socket of its own, which the kernel picks,
// are what somebody who forges answers would have to guess (RFC 5452 section 9).

var errNoAnswer = errors.New("usernet: no DNS server answered")

// rounds is how often all servers are tried; resolv.conf(5) has the same.
const rounds = 2

// ask has the servers answer a query, one after the other, on network "udp" or
// "tcp". A server that does not answer in time, or answers that it cannot, has
// the next one tried; if none does better, what it said is the answer.
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
		if !waited { // all were refused at once: asking again is no use
			break
		}
	}
	return nil, errNoAnswer
}

// isExcuse reports whether a reply only says that this server is of no help.
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

func (d *dnsForwarder) servers() []netip.AddrPort {
	if len(d.config.Resolvers) > 0 {
		return d.config.Resolvers
	}
	return d.hostConf.get().servers
}

// askOne asks one server.
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
	rand.Read(own[:2]) // never fails
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

// exchangeUDP sends a query and waits for the answer to it; what else comes is
// passed over. An answer that is longer than the guest takes, which no good
// server sends, is cut.
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

// exchangeTCP does the same over a connection, where only the answer can come.
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

// answers reports whether reply is a sound message that answers query, whose
// question is m's: RFC 5452 section 9.1 wants identifier and question the same
// (addresses and ports the kernel has compared).
func (d *dnsForwarder) answers(m *wire.DNS, query, reply []byte) bool {
	r, err := wire.ParseDNS(reply)
	return err == nil && d.beginsAnswer(m, query, reply) && sameQuestion(&r.Question, &m.Question)
}

// beginsAnswer looks at the header alone.
func (d *dnsForwarder) beginsAnswer(m *wire.DNS, query, reply []byte) bool {
	return len(reply) >= wire.DNSHeaderLen && reply[0] == query[0] && reply[1] == query[1] &&
		wire.DNSFlags(binary.BigEndian.Uint16(reply[2:]))&wire.DNSResponse != 0
}

func sameQuestion(a, b *wire.DNSQuestion) bool {
	return a.Type == b.Type && a.Class == b.Class && a.Name.Lower() == b.Name.Lower()
}

// maxDNSMessage is what the length in front of a message by TCP can say.
const maxDNSMessage = 1<<16 - 1

// writeDNS sends a message with its length in front (RFC 1035 section 4.2.2), in
// one piece (RFC 7766 section 8).
func writeDNS(w io.Writer, msg []byte) error {
	if len(msg) > maxDNSMessage {
		return wire.ErrLength
	}
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(msg)), uint16(len(msg)))
	_, err := w.Write(append(b, msg...))
	return err
}

// readDNS takes a message with its length in front.
func readDNS(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, msg)
	return msg, err
}
