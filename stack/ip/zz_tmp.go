package ip

import (
	"net/netip"
	"time"
)

type IDs struct{ n uint16 }

func (i *IDs) Next(src, dst netip.Addr) uint16 { i.n++; return i.n }

type PathMTU struct{}

func (p *PathMTU) Lookup(now time.Duration, dst netip.Addr) (int, bool) { return 0, false }
func (p *PathMTU) Learn(now time.Duration, dst netip.Addr, mtu, length int) {}
func (p *PathMTU) Guess(length int) int { return 576 }
