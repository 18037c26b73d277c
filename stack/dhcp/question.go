package dhcp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// What the two clients of DHCP for IPv6 have in common.

// question is a message that is sent again until there is an answer (RFC 8415 section 15).
type question struct {
	random *rand.Rand

	transaction uint32
	first       time.Duration // the wait for an answer to the first message
	most        time.Duration // the longest wait
	timeout     time.Duration // the wait for an answer to the last message; 0: none has been sent
	began       time.Duration // when the first message was sent; with timeout
	next        time.Duration // when a message is due; timer.Never: none is
	sent        int           // messages
}

// ask begins another question, after a random part of delay.
func (q *question) ask(now, delay, first, most time.Duration) {
	q.transaction, q.first, q.most, q.timeout, q.sent = q.random.Uint32()&0xffffff, first, most, 0, 0
	if q.next = now; delay > 0 {
		q.next += time.Duration(q.random.Int64N(int64(delay)))
	}
}

// asked counts a message, and returns for how long it has been asked, in hundredths of a second.
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

// spread is d, longer or shorter by up to a tenth of last.
func (q *question) spread(d, last time.Duration) time.Duration {
	tenth := int64(last / 10)
	return d + time.Duration(q.random.Int64N(2*tenth+1)-tenth)
}

// answered ends the question.
func (q *question) answered() { q.next, q.timeout = timer.Never, 0 }

// answers reports whether a message of a server is about what was asked (RFC 8415 sections 16.3
// and 16.10).
func (q *question) answers(m *wire.DHCPv6, client []byte) bool {
	return q.timeout != 0 && m.Transaction == q.transaction && len(m.ServerID) > 0 && slices.Equal(m.ClientID, client)
}

// limit is what a server says of the longest wait, if it may say so (sections 21.24 and 21.25);
// else it stays.
func limit(most *time.Duration, seconds uint32) {
	const least, greatest = time.Minute, 24 * time.Hour
	if d := time.Duration(seconds) * time.Second; d >= least && d <= greatest {
		*most = d
	}
}

// clientID is the identifier of an interface, a DUID-LL (section 11.4).
func clientID(mac wire.MAC) []byte { return append([]byte{0, 3, 0, 1}, mac[:]...) }

const maxServers6 = 8 // name servers that are believed in; the others are not

// believed is the name servers of a list that can be any.
func believed(list []netip.Addr) []netip.Addr {
	servers := []netip.Addr{}
	for _, a := range list {
		if len(servers) < maxServers6 && wire.IsHost6(a) {
			servers = append(servers, a)
		}
	}
	return servers
}
