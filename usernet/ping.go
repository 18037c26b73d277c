package usernet

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"loam/stack"
)

// A pinger forwards echo requests of the guest over one ICMP socket of the host. There is one pinger for IPv4 and one
// for IPv6. It uses its own sequence numbers. The guest gets a reply only when the real destination has replied.
//
// Pending requests are in a ring with room for Limits.Pings requests, indexed by sequence number. A new request
// overwrites the oldest one. So no timer is needed, and a guest that pings a host that never replies uses only the
// ring.
type pinger struct {
	tally  *tally
	socket *icmpSocket // nil: the host does not permit ICMP sockets
	refuse func()      // called for each request if socket is nil; logs once

	mu      sync.Mutex // guards the fields below
	seq     uint16     // sequence number of the last request
	waiting []echo     // pending requests, indexed by seq modulo the length of the ring
}

// echo is a pending request. The zero value means that an element of the ring is free.
type echo struct {
	dst   netip.Addr
	seq   uint16
	reply func() // sends the reply to the guest
}

// newPinger creates a pinger. The parameter places is the number of requests for which it
// has room. If socket is nil, the pinger logs an error, the parameter why, at the guest's
// first ping.
func newPinger(places int, socket *icmpSocket, why error, t *tally, log *slog.Logger) *pinger {
	return &pinger{
		tally: t, socket: socket, waiting: make([]echo, places),
		refuse: sync.OnceFunc(func() { log.Warn("the guest cannot ping", "error", why) }),
	}
}

// handlePing forwards an echo request of the guest.
func (g *Gateway) handlePing(r *stack.PingRequest) {
	dst, ok := g.config.reach(r.Dst)
	if !ok {
		g.deny(PingDenied, r.Dst)
		return
	}
	p := g.pinger
	if dst.Is6() {
		p = g.pinger6
	}
	p.send(dst, r.Data, r.Reply)
}

// send sends an echo request to dst. The function reply is called when dst has replied.
func (p *pinger) send(dst netip.Addr, data []byte, reply func()) {
	if p.socket == nil {
		p.tally.count(PingNoSocket)
		p.refuse()
		return
	}
	p.mu.Lock()
	p.seq++
	seq := p.seq
	place := &p.waiting[int(seq)%len(p.waiting)]
	if place.reply != nil {
		p.tally.count(PingLost)
	}
	*place = echo{dst, seq, reply}
	p.mu.Unlock()
	if err := p.socket.send(dst, seq, data); err != nil {
		p.tally.count(PingFailed)
		p.take(dst, seq)
		return
	}
	p.tally.count(PingOut)
}

// take removes and returns the pending request to which a reply belongs. seq is the
// reply's sequence number, and source is its source address.
func (p *pinger) take(source netip.Addr, seq uint16) (echo, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := &p.waiting[int(seq)%len(p.waiting)]
	e := *place
	if e.reply == nil || e.seq != seq || e.dst != source {
		return echo{}, false
	}
	*place = echo{}
	return e, true
}

// loop processes replies until the socket is closed.
func (p *pinger) loop() {
	buf := new(buffer)
	for {
		from, msg, err := p.socket.receive(buf[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an ICMP error about a request; the guest's ping will time out
			continue
		}
		seq, ok := p.socket.answered(msg)
		if !ok {
			continue // a raw socket also receives replies to requests of other programs
		}
		if e, ok := p.take(from, seq); ok {
			p.tally.count(PingIn)
			e.reply()
		} else {
			p.tally.count(PingStray)
		}
	}
}
