package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// The common part of the two DHCPv6 clients, Client6 and Inform.

// question is a message that is retransmitted until there is an answer (RFC 8415 section 15).
type question struct {
	random *rand.Rand

	transaction uint32
	first       time.Duration // wait for an answer to the first message
	most        time.Duration // maximum wait for an answer
	timeout     time.Duration // wait for an answer to the last message; 0: none was sent
	began       time.Duration // time at which the first message was sent; valid if timeout is not 0
	next        time.Duration // time of the next message; timer.Never: none is due
	sent        int           // number of messages sent
}

// ask starts to send another message, after a random part of delay.
func (q *question) ask(now, delay, first, most time.Duration) {
	q.transaction, q.first, q.most, q.timeout, q.sent = q.random.Uint32()&0xffffff, first, most, 0, 0
	if q.next = now; delay > 0 {
		q.next += time.Duration(q.random.Int64N(int64(delay)))
	}
}

// asked records that the message is sent. It returns the time since the first transmission, in hundredths of a second.
func (q *question) asked(now time.Duration) (elapsed uint16) {
	if q.timeout == 0 {
		q.began, q.timeout = now, q.spread(q.first, q.first)
	} else {
		q.timeout = q.spread(2*q.timeout, q.timeout)
	}
	if q.timeout > q.most {
		q.timeout = q.spread(q.most, q.most)
	}
	q.next = now + q.timeout
	q.sent++
	return uint16(min((now-q.began)/(10*time.Millisecond), 0xffff))
}

// spread returns d plus or minus a random time, which is at most a tenth of the duration
// last.
func (q *question) spread(d, last time.Duration) time.Duration {
	tenth := int64(last / 10)
	return d + time.Duration(q.random.Int64N(2*tenth+1)-tenth)
}

// answered ends the retransmissions.
func (q *question) answered() { q.next, q.timeout = timer.Never, 0 }

// answers reports whether a server's message answers the question (RFC 8415 sections 16.3 and 16.10).
func (q *question) answers(m *wire.DHCPv6, client []byte) bool {
	return q.timeout != 0 && m.Transaction == q.transaction && len(m.ServerID) > 0 && slices.Equal(m.ClientID, client)
}

// limit sets *most, the longest wait, to the value in seconds that a server has sent, if
// that value is in the permitted range (RFC 8415 sections 21.24 and 21.25).
func limit(most *time.Duration, seconds uint32) {
	const least, greatest = time.Minute, 24 * time.Hour
	if d := time.Duration(seconds) * time.Second; d >= least && d <= greatest {
		*most = d
	}
}

// clientID returns the identifier of an interface, a DUID-LL (RFC 8415 section 11.4).
func clientID(mac wire.MAC) []byte { return append([]byte{0, 3, 0, 1}, mac[:]...) }

const maxServers6 = 8 // maximum number of name servers accepted

// believed returns the valid addresses in a list of name servers, at most maxServers6.
func believed(list []netip.Addr) []netip.Addr {
	servers := []netip.Addr{}
	for _, a := range list {
		if len(servers) < maxServers6 && wire.IsHost6(a) {
			servers = append(servers, a)
		}
	}
	return servers
}
