package flood

import (
	"math/bits"
	"net/netip"
	"time"

	"loam/link"
)

// A receiver counts the frames that hosts can send without a connection (link.Kinds). Many of them from many senders are
// a flood. The stack would answer few of these frames, but it would spend a system call or more on each of them. A single sender is
// not limited: it may be a host that waits for replies.

// Limits above which frames count as a flood.
const (
	CensusFrames = 4096                   // number of frames, of any kind, after which a census ends
	censusSpan   = 200 * time.Millisecond // the frames are a flood only if they arrived within this time: more than 20,000 frames a second
)

// Census counts frames that may belong to a flood. The zero value is ready for use.
type Census struct {
	began  time.Duration
	frames int
	kinds  [link.NumKinds]int
	sender vote[netip.Addr]
	port   vote[uint16] // most frequent destination port of UDP datagrams
}

// vote finds the value that occurs in more than half of all cases, by the algorithm of Boyer
// and Moore.
type vote[T comparable] struct {
	value T   // the value that may be the most frequent
	lead  int // value has occurred at most this many times more than all other values together
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

// Count counts frames, and returns how many of them are of a kind in link.Kinds. It calls the function report
// with the kinds of each flood that it recognises. port is the destination port of UDP datagrams among them.
// The function now returns the time of the stack.
func (c *Census) Count(frames []*link.Frame, now func() time.Duration, report func(kinds link.Kinds, port uint16)) (counted int64) {
	for _, f := range frames {
		kind, sender := link.KindOf(f.Bytes())
		if kind == 0 {
			continue
		}
		counted++
		if c.frames == 0 {
			c.began = now()
		}
		if c.add(kind, sender, f.Bytes()); c.frames == CensusFrames {
			if kinds := c.flood(now() - c.began); kinds != 0 {
				report(kinds, c.port.value)
			}
			*c = Census{}
		}
	}
	return counted
}

// add counts a frame that has arrived.
func (c *Census) add(kind link.Kinds, sender netip.Addr, frame []byte) {
	c.frames++
	c.kinds[bits.TrailingZeros8(uint8(kind))]++
	c.sender.add(sender)
	if kind == link.KindUDP {
		c.port.add(link.UDPPort(frame))
	}
}

// flood returns the kinds of frames that make up a flood, at the end of a census that took span. UDP datagrams make up a
// flood only if most of them have the same destination port.
func (c *Census) flood(span time.Duration) (kinds link.Kinds) {
	if span > censusSpan || c.sender.lead > CensusFrames/4 {
		return 0
	}
	for i, n := range c.kinds {
		if n > CensusFrames/8 {
			kinds |= 1 << i
		}
	}
	if c.port.lead < CensusFrames/16 {
		kinds &^= link.KindUDP
	}
	return kinds
}
