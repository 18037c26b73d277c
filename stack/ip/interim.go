package ip

import (
	"net/netip"
	"time"
)

// Interim forms of two machines that are being written.

// IDs makes IP identifications.
type IDs struct{ n atomicCounter }

// Next returns one.
func (i *IDs) Next(src, dst netip.Addr) uint16 { return uint16(i.n.Add(1)) }

// PathMTU remembers nothing yet.
type PathMTU struct{}

// Lookup finds nothing.
func (p *PathMTU) Lookup(now time.Duration, dst netip.Addr) (int, bool) { return 0, false }

// Learn forgets.
func (p *PathMTU) Learn(now time.Duration, dst netip.Addr, mtu, length int) {}

// Guess is the least.
func (p *PathMTU) Guess(length int) int { return 576 }

type atomicCounter struct{ n uint32 }

// Add counts.
func (c *atomicCounter) Add(d uint32) uint32 { c.n += d; return c.n }
