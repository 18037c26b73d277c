package fastopen

import (
	"net/netip"
	"sync"

	"loam/wire"
)

// maxServers bounds the servers in a Cache.
const maxServers = 1024

// Server describes a server to its clients.
type Server struct {
	Cookie wire.FastOpenCookie
	MSS    int // segment size that the server has announced, in bytes; it may be wrong for the present path
}

// unknownMSS is the segment size of a server of which nothing is known, in bytes.
const unknownMSS = 536

// Offer returns the option for a SYN to the server, and how many bytes its data and the other options may have: the cookie, or the
// request for one and no data. If bare is set, there is no option, and the SYN has data in any case.
func (s Server) Offer(bare bool) (option wire.FastOpenCookie, most int) {
	switch {
	case bare:
		return option, max(s.MSS, unknownMSS)
	case s.Cookie.Len() > 0:
		return s.Cookie, s.MSS
	}
	option, _ = wire.NewFastOpenCookie(nil)
	return option, 0
}

// Cache holds the cookies that servers have given to this host. Its methods are safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	servers map[netip.Addr]Server
}

// Get returns the entry of a server, or the zero value.
func (c *Cache) Get(server netip.Addr) Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[server]
}

// Put remembers a server. If the cache is full, any other server is forgotten.
func (c *Cache) Put(server netip.Addr, s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers == nil {
		c.servers = make(map[netip.Addr]Server)
	}
	if _, known := c.servers[server]; !known && len(c.servers) >= maxServers {
		for other := range c.servers {
			delete(c.servers, other)
			break
		}
	}
	c.servers[server] = s
}
