package neigh

import (
	"net/netip"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// State is the state of an entry (RFC 4861 section 7.3.2). Negative and Static are FAILED and PERMANENT on
// Linux.
type State uint8

// Values of State (RFC 4861 section 7.3.2).
const (
	Incomplete State = iota // the address is being resolved
	Reachable               // the MAC was confirmed recently
	Stale                   // the MAC was not confirmed recently, and the entry was not used since
	Delay                   // the entry is in use, and upper layers may still confirm it
	Probe                   // the neighbour is solicited to check that it still answers
	Negative                // the neighbour did not answer; the entry is kept for a short time
	Static                  // the MAC was configured, not learned
)

var stateText = [...]string{"incomplete", "reachable", "stale", "delay", "probe", "failed", "static"}

// String returns Linux's name of the state.
func (s State) String() string { return stateText[s] }

// Evidence describes how a MAC was learned.
type Evidence uint8

// Values of Evidence, the weakest first.
const (
	Heard    Evidence = iota // the packet was overheard: it updates an entry but creates none
	Asked                    // the sender has asked for an address of ours: the packet also creates an entry
	Answered                 // the packet answers our solicitation: it confirms the MAC, if we have solicited
)

// Deadline returns when Advance must be called, or Never.
func (c *Cache) Deadline() time.Duration { return c.wheel.Next() }

// Advance runs the timers that have expired.
func (c *Cache) Advance(now time.Duration) {
	c.wheel.Advance(now, func(e *timer.Entry) { c.expire(now, e.Owner.(*neighbour)) })
}

// Solicit returns the next address to solicit. The solicitation goes to mac, or to the whole link if mac is
// zero. It counts as sent now. ok is false if there is none.
func (c *Cache) Solicit(now time.Duration) (addr netip.Addr, mac wire.MAC, ok bool) {
	n := c.due.Front()
	if n == nil {
		return addr, mac, false
	}
	n.turn.Remove()
	n.asked++
	c.counters.Solicited++
	c.wheel.Schedule(&n.timer, now+c.cfg.Retransmit)
	return n.addr, n.mac, true
}

// Confirm reports that packets to addr evidently arrive, for example because new data was acknowledged (RFC
// 4861 section 7.3.1).
func (c *Cache) Confirm(now time.Duration, addr netip.Addr) {
	n := c.table[addr]
	if n == nil {
		return
	}
	switch n.state {
	case Reachable, Stale, Delay, Probe:
		c.enter(now, n, Reachable)
	}
}

// Learn records that addr was seen at mac.
func (c *Cache) Learn(now time.Duration, addr netip.Addr, mac wire.MAC, ev Evidence) {
	n := c.table[addr]
	switch {
	case n == nil:
		c.learnNew(now, addr, mac, ev)
	case n.state == Static:
		if n.mac != mac {
			c.counters.Locked++
		}
	case n.state == Incomplete:
		c.counters.Resolved++
		c.emit(Resolved, addr, mac)
		c.setMAC(now, n, mac, ev)
	case n.state == Negative:
		c.setMAC(now, n, mac, ev)
	case n.mac == mac:
		if n.state == Probe && ev == Answered && n.asked > 0 {
			c.enter(now, n, Reachable)
		}
	case now-n.changed < c.cfg.Lock:
		c.counters.Locked++
	default:
		c.counters.Changed++
		c.emit(Changed, addr, mac)
		c.setMAC(now, n, mac, ev)
	}
}

// learnNew learns the MAC of an address that has no entry. Only a request for one of our addresses creates an entry.
func (c *Cache) learnNew(now time.Duration, addr netip.Addr, mac wire.MAC, ev Evidence) {
	if ev != Asked {
		c.counters.Unmatched++
		return
	}
	if n := c.add(addr, unsolicited); n != nil {
		c.setMAC(now, n, mac, ev)
	}
}

// setMAC stores a learned MAC. The entry becomes Reachable if the MAC is an answer to our solicitation.
// Otherwise it becomes Stale, so that it is probed when it is used.
func (c *Cache) setMAC(now time.Duration, n *neighbour, mac wire.MAC, ev Evidence) {
	n.mac, n.changed = mac, now
	if ev == Answered && n.asked > 0 {
		c.enter(now, n, Reachable)
	} else {
		c.enter(now, n, Stale)
	}
}

// enter changes the state of n to s and sets the timer or the solicitation that follows.
func (c *Cache) enter(now time.Duration, n *neighbour, s State) {
	n.state = s
	switch s {
	case Incomplete, Probe:
		c.wheel.Cancel(&n.timer)
		n.asked = 0
		c.due.PushBack(&n.turn)
		return
	case Reachable:
		c.setRank(n, proven)
		c.wheel.Schedule(&n.timer, now+c.spread(c.cfg.Reachable))
	case Stale:
		c.wheel.Schedule(&n.timer, now+c.cfg.Forget)
	case Delay:
		c.wheel.Schedule(&n.timer, now+c.cfg.Delay)
	case Negative:
		c.wheel.Schedule(&n.timer, now+c.cfg.Negative)
	}
	n.asked = 0
	n.turn.Remove()
}

// expire handles the expiry of a timer that enter or Solicit has set.
func (c *Cache) expire(now time.Duration, n *neighbour) {
	switch n.state {
	case Incomplete, Probe:
		c.unanswered(now, n)
	case Reachable:
		c.enter(now, n, Stale)
	case Delay:
		c.enter(now, n, Probe)
	case Stale, Negative:
		c.drop(n)
	}
}

// unanswered solicits again or gives up. A neighbour that stops answering is removed and not kept as
// Negative. It may have moved, and the next Lookup asks the whole link (RFC 4861 section 7.3.3).
func (c *Cache) unanswered(now time.Duration, n *neighbour) {
	switch {
	case n.asked < c.cfg.Attempts:
		c.due.PushBack(&n.turn)
	case n.state == Probe:
		c.fail(n)
		n.state = Negative // fail has already reported to the owner that waiting packets cannot be sent
		c.drop(n)
	default:
		c.fail(n)
		c.enter(now, n, Negative)
	}
}

// spread returns a random time between 0.5 and 1.5 times the duration mean (RFC 4861
// section 10, MIN_RANDOM_FACTOR and MAX_RANDOM_FACTOR).
func (c *Cache) spread(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(c.random.Int64N(int64(mean)+1))
}
