package usernet

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"loam/stack"
)

// Ping. One ICMP socket of the host, for each version of IP, carries the echo requests of the guest, with
// sequence numbers of our own; when the real host's reply comes, the request is
// answered. Nothing is answered that nobody answered.
//
// What waits is in a ring of Limits.Pings places, by sequence number: a request
// takes the place of the one that many before it, which has been waiting
// longest. So there is no timer, and a guest that pings what never answers holds
// no more than the ring.
type pinger struct {
	tally  *tally
	socket *icmpSocket // nil: the host does not let us ping
	refuse func()      // then: called for the first request

	mu      sync.Mutex // guards what follows
	seq     uint16     // of the last request
	waiting []echo     // by seq modulo length
}

// echo is a request on its way. The zero value is none.
type echo struct {
	dst   netip.Addr
	seq   uint16
	reply func() // answers the guest
}

// newPinger makes a pinger with the socket, if there is one. Why there is none
// is told to log when the guest first pings.
func newPinger(places int, socket *icmpSocket, why error, t *tally, log *slog.Logger) *pinger {
	return &pinger{
		tally: t, socket: socket, waiting: make([]echo, places),
		refuse: sync.OnceFunc(func() { log.Warn("the guest cannot ping", "error", why) }),
	}
}

// handlePing sends a request of the guest on.
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

// send asks dst and has reply called when it has answered.
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

// take takes the request out that a reply is for.
func (p *pinger) take(from netip.Addr, seq uint16) (echo, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := &p.waiting[int(seq)%len(p.waiting)]
	e := *place
	if e.reply == nil || e.seq != seq || e.dst != from {
		return echo{}, false
	}
	*place = echo{}
	return e, true
}

// loop takes the replies until the socket is closed.
func (p *pinger) loop() {
	buf := new(buffer)
	for {
		from, msg, err := p.socket.receive(buf[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // ICMP about a request; the guest's ping will time out
			continue
		}
		seq, ok := p.socket.answered(msg)
		if !ok {
			continue // a raw socket hears everybody's
		}
		if e, ok := p.take(from, seq); ok {
			p.tally.count(PingIn)
			e.reply()
		} else {
			p.tally.count(PingStray)
		}
	}
}
