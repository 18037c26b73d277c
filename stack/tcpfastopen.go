package stack

import (
	"net/netip"

	"loam/stack/fastopen"
	"loam/stack/tcp"
	"loam/wire"
)

// TCP Fast Open (RFC 7413): data in a SYN saves a round trip. Package tcp has the protocol, package fastopen keys and cookies.

func newFastKeys() *fastopen.Keys {
	key := randomKey()
	return fastopen.NewKeys(key[:])
}

// openFast processes the option Fast Open of a SYN that has created the connection c. If its cookie is valid, the data of the
// SYN is delivered at once, and the connection does not wait for the end of the handshake.
func (l *TCPListener) openFast(sh *shard, id tcp.ID, c *TCPConn, syn *tcp.Segment) {
	o := &c.options.o
	asks := syn.FastOpen.Present() && syn.FastOpen.Len() == 0
	if asks {
		sh.tally.count(TCPFastRequests)
	}
	if o.FastOpen == 0 || !syn.FastOpen.Present() && (!o.FastOpenNoCookie || len(syn.Payload) == 0) {
		return
	}
	if !l.fast.Enter(sh.now, int(o.FastOpen)) {
		sh.tally.count(TCPFastOverflow)
		return
	}
	keys := l.FastOpenKeys()
	verdict := fastopen.Valid
	if !o.FastOpenNoCookie {
		verdict = keys.Check(&syn.FastOpen, id.Remote.Addr(), id.Local.Addr())
	}
	if verdict != fastopen.Valid {
		c.machine.SetFastOpen(keys.Cookie(id.Remote.Addr(), id.Local.Addr()), 0)
	}
	if verdict == fastopen.Wrong {
		l.fast.Leave(sh.now, false)
		if !asks {
			sh.tally.count(TCPFastPassiveFail)
		}
		return
	}
	if verdict == fastopen.Older {
		sh.tally.count(TCPFastOlder)
	}
	sh.tally.count(TCPFastPassive)
	sh.fastOpened[c] = l
	c.machine.OpenFast(sh.now, syn)
}

// FastOpenKeys returns the keys for cookies of TCP Fast Open (TCP_FASTOPEN_KEY). They are random keys of the stack unless
// SetFastOpenKeys has set others.
func (l *TCPListener) FastOpenKeys() *fastopen.Keys {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fastKeys == nil {
		return l.binding.stack.fastKeys
	}
	return l.fastKeys
}

// SetFastOpenKeys sets the keys. Hosts that share an address behind a load balancer need the same keys.
func (l *TCPListener) SetFastOpenKeys(k *fastopen.Keys) {
	l.mu.Lock()
	l.fastKeys = k
	l.mu.Unlock()
}

// leaveFast removes the connection from the pending requests of its listener once its handshake is complete, or it has ended.
func (c *TCPConn) leaveFast(sh *shard) {
	if l := sh.fastOpened[c]; l != nil && (c.removed || c.machine.State() != tcp.SynReceived) {
		delete(sh.fastOpened, c)
		l.fast.Leave(sh.now, c.machine.Err() == tcp.ErrReset)
		if c.status.Load()&statusConnected != 0 && c.machine.State() >= tcp.Established {
			c.established(sh)
		}
	}
}

// established notes the end of the handshake. The peer has shown that its address is not forged.
func (c *TCPConn) established(sh *shard) {
	sh.tally.count(TCPEstablished)
	sh.know(c.remote.Addr())
}

// DialFast starts to connect as DialTCP does. If this host has a cookie of the server, or if o.FastOpenNoCookie is set, the
// first segment also carries data: n bytes of it, at most one segment. The caller writes the rest. Otherwise n is 0, and the first
// segment requests a cookie for later connections. A server may receive the data twice if the network duplicates the
// segment (RFC 7413 section 6.1).
func (s *Stack) DialFast(local, remote netip.AddrPort, o TCPOptions, data []byte) (c *TCPConn, n int, err error) {
	d := early{data: data}
	c, err = s.dialFrom(local, remote, o, &d)
	return c, d.n, err
}

// DialFast is like Stack.DialFast, from the bound address. noCookie stands for TCPOptions.FastOpenNoCookie.
func (b *TCPBinding) DialFast(remote netip.AddrPort, noCookie bool, data []byte) (c *TCPConn, n int, err error) {
	if err := b.use(); err != nil {
		return nil, 0, err
	}
	d := early{data: data}
	b.mu.Lock()
	o := b.options
	b.mu.Unlock()
	o.FastOpenNoCookie = noCookie
	c, err = b.stack.dialTCP(b.local, remote, o, b.port, &d)
	return c, d.n, err
}

// HasFastOpenCookie reports whether DialFast would send data in the first segment to a server.
func (s *Stack) HasFastOpenCookie(server netip.Addr) bool {
	known := s.servers.Get(s.now(), server.Unmap())
	return known.Cookie.Len() > 0
}

// early is data for the first segment of a connection. n bytes of it were taken.
type early struct {
	data []byte
	n    int
}

// dialFast adds a cookie and data to the SYN of a new connection, or the request for a cookie.
func (sh *shard) dialFast(c *TCPConn, d *early) {
	known := sh.stack.servers.Get(sh.now, c.remote.Addr())
	option, most := known.Offer(c.options.o.FastOpenNoCookie)
	most = min(most, sh.mss(c.options.o.Device, tcp.ID{Local: c.LocalAddrPort(), Remote: c.RemoteAddrPort()}))
	c.machine.SetFastOpen(option, most)
	if room := most - wire.TCPMaxLen + wire.TCPMinLen; room > 0 {
		d.n = c.toSend.Write(d.data[:min(len(d.data), room)])
		c.noteWritten(sh)
	}
}

// learnFast remembers the answer of the peer to our SYN, or that there was none, and counts whether data in our SYN was acknowledged.
func (c *TCPConn) learnFast(sh *shard) {
	f := c.machine.FastOpen()
	lost := f.Sent && f.Repeated && !f.SynData
	switch {
	case !f.Asked && !f.Sent || !lost && !c.Connected():
		return
	case f.SynData:
		sh.tally.count(TCPFastActive)
	case f.Sent:
		sh.tally.count(TCPFastActiveFail)
	}
	sh.stack.servers.Put(sh.now, c.remote.Addr(), fastopen.Server{Cookie: f.Cookie, MSS: c.machine.PeerMSS()}, lost)
}
