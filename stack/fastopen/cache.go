package fastopen

import (
	"net/netip"
	"sync"
	"time"

	"loam/wire"
)

// maxServers bounds the servers in a Cache.
const maxServers = 1024

// A path may drop SYNs with data. After maxLosses of them in a row, no data is sent in a SYN to the server for pause, doubled for
// each loss (RFC 7413 section 4.1.3.1).
const (
	maxLosses = 2
	pause     = time.Minute
)

// Server describes a server to its clients.
type Server struct {
	Cookie wire.FastOpenCookie
	MSS    int  // segment size that the server has announced, in bytes; it may be wrong for the present path
	Paused bool // SYNs with data were lost: the other fields are zero
}

// unknownMSS is assumed for a server whose segment size is not known, in bytes.
const unknownMSS = 536

// Offer returns the option for a SYN to the server, and how many bytes its data and the other options may have: the cookie, or the
// request for one and no data. If bare is set, there is no option, and the SYN has data in any case, unless s is paused.
func (s Server) Offer(bare bool) (option wire.FastOpenCookie, most int) {
	switch {
	case s.Paused:
		return option, 0
	case bare:
		return option, max(s.MSS, unknownMSS)
	case s.Cookie.Len() > 0:
		return s.Cookie, s.MSS
	}
	option, _ = wire.NewFastOpenCookie(nil)
	return option, 0
}

// entry is an entry of a Cache.
type entry struct {
	Server
	losses int           // SYNs with data that were lost in a row
	lost   time.Duration // when the last one was noted
}

// paused reports whether no data may be sent in a SYN.
func (e *entry) paused(now time.Duration) bool {
	return e.losses >= maxLosses && now < e.lost+pause<<min(e.losses, 8)
}

// Cache holds what this host knows about servers. Its methods are safe for concurrent use. Times are times of the stack's clock.
type Cache struct {
	mu      sync.Mutex
	servers map[netip.Addr]entry
}

// Get returns what is known about a server. It is the zero value for an unknown one.
func (c *Cache) Get(now time.Duration, server netip.Addr) Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.servers[server]
	if e.paused(now) {
		return Server{Paused: true}
	}
	return e.Server
}

// Put remembers the answer of a server to a SYN. s has no cookie if the answer had none. lost is set if a SYN with data was lost,
// and the server has answered a SYN without data, or none.
func (c *Cache) Put(now time.Duration, server netip.Addr, s Server, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.servers[server]
	switch {
	case !known && s.Cookie.Len() == 0 && !lost:
		return
	case c.servers == nil:
		c.servers = make(map[netip.Addr]entry)
	case !known && len(c.servers) >= maxServers:
		for other := range c.servers { // any server is forgotten
			delete(c.servers, other)
			break
		}
	}
	if s.Cookie.Len() > 0 {
		e.Server = s
	}
	if lost {
		e.losses, e.lost = e.losses+1, now
	} else {
		e.losses = 0
	}
	c.servers[server] = e
}
