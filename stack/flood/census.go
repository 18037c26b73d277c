// Package flood has the data that the stack needs against floods from forged addresses: counts of
// arriving frames (Census), hosts that are not strangers (Peers), and connections whose segments
// are not stray (Sets). The stack decides when a device drops frames (stack/thinning.go).
package flood

import (
	"math/bits"
	"net/netip"
	"time"

	"loam/link"
)

// A receiver judges after Frames frames of any kind. They can be a flood if they arrive within
// Span: 20,000 per second.
const (
	Frames = 4096
	Span   = 200 * time.Millisecond
)

// Census counts the frames of a receiver that may belong to a flood. It belongs to the receiver.
// The zero value is empty.
type Census struct {
	began  time.Duration
	frames int
	kinds  [link.NumKinds]int
	sender vote[netip.Addr]
	port   vote[uint16] // destination port of UDP datagrams
}

// vote finds the value that occurs in more than half of all cases, by the algorithm of Boyer
// and Moore.
type vote[T comparable] struct {
	value T   // the candidate
	lead  int // at most how often it has occurred more than all other values together
}

func (v *vote[T]) add(value T) {
	switch {
	case value == v.value:
		v.lead++
	case v.lead == 0:
		v.value, v.lead = value, 1
	default:
		v.lead--
	}
}

// Empty reports whether no frame has been counted. Begin must then be called before Add.
func (c *Census) Empty() bool { return c.frames == 0 }

// Begin sets the time of the first frame.
func (c *Census) Begin(now time.Duration) { c.began = now }

// Add counts a frame. It reports whether the census is complete, so that End must be called.
func (c *Census) Add(kind link.Kinds, sender netip.Addr, frame []byte) (complete bool) {
	c.frames++
	c.kinds[bits.TrailingZeros8(uint8(kind))]++
	c.sender.add(sender)
	if kind == link.KindUDP {
		c.port.add(link.UDPPort(frame))
	}
	return c.frames == Frames
}

// End returns the kinds that make up a flood, and empties the census. UDP datagrams do if most of
// them have the same destination port, which is port.
func (c *Census) End(now time.Duration) (kinds link.Kinds, port uint16) {
	kinds, port = c.flood(now-c.began), c.port.value
	*c = Census{}
	return kinds, port
}

func (c *Census) flood(span time.Duration) (kinds link.Kinds) {
	if span > Span || c.sender.lead > Frames/4 {
		return 0
	}
	for i, n := range c.kinds {
		if n > Frames/8 {
			kinds |= 1 << i
		}
	}
	if c.port.lead < Frames/16 {
		kinds &^= link.KindUDP
	}
	return kinds
}
