package neigh

import (
	"net/netip"
	"time"

	"loam/stack/timer"
	"loam/wire"
)

// State is that of an entry (RFC 4861 section 7.3.2; Negative and Static are
// Linux's FAILED and PERMANENT).
type State uint8

// States.
const (
	Incomplete State = iota // being asked for
	Reachable               // has answered lately
	Stale                   // not confirmed lately, and not used since
	Delay                   // used: a confirmation may still come from above
	Probe                   // being asked whether it is still there
	Negative                // did not answer: remembered for a short while
	Static                  // set by hand
)

var stateText = [...]string{"incomplete", "reachable", "stale", "delay", "probe", "failed", "static"}

// String is the state in Linux's words.
func (s State) String() string { return stateText[s] }

// Evidence says how we came by a MAC.
type Evidence uint8

// Evidence, the weakest first.
const (
	Heard    Evidence = iota // in passing: corrects an entry, makes none
	Asked                    // it asked for an address of ours: makes an entry too
	Answered                 // it answers us: confirms, if we have asked
)

// Deadline is when Advance has to be called, Never if not.
func (c *Cache) Deadline() time.Duration { return c.wheel.Next() }

// Advance does what is due.
func (c *Cache) Advance(now time.Duration) {
	c.wheel.Advance(now, func(e *timer.Entry) { c.expire(now, e.Owner.(*neighbour)) })
}

// Solicit returns the next address to ask for, until there is none: at mac, or
// the whole link if mac is zero. It counts as sent now.
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

// Confirm says that addr has just made progress in a way that only answers from
// there explain, such as an acknowledgement of new data (RFC 4861 section
// 7.3.1).
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

// Learn takes in that addr was seen at mac.
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

func (c *Cache) learnNew(now time.Duration, addr netip.Addr, mac wire.MAC, ev Evidence) {
	if ev != Asked {
		c.counters.Unmatched++
		return
	}
	if n := c.add(addr, told); n != nil {
		c.setMAC(now, n, mac, ev)
	}
}

// setMAC stores what was learnt. It is Reachable if it answers a question, and
// else Stale, so that it is probed when it is used.
func (c *Cache) setMAC(now time.Duration, n *neighbour, mac wire.MAC, ev Evidence) {
	n.mac, n.changed = mac, now
	if ev == Answered && n.asked > 0 {
		c.enter(now, n, Reachable)
	} else {
		c.enter(now, n, Stale)
	}
}

// enter puts n into state s and sets what happens next.
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

// expire is called when the timer that enter or Solicit has set runs out.
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

// unanswered asks once more or gives up. A neighbour that stops answering is
// forgotten rather than remembered as such: it may have moved, and the next
// Lookup asks the whole link (RFC 4861 section 7.3.3).
func (c *Cache) unanswered(now time.Duration, n *neighbour) {
	switch {
	case n.asked < c.cfg.Attempts:
		c.due.PushBack(&n.turn)
	case n.state == Probe:
		c.fail(n)
		n.state = Negative // what waits for it knows already
		c.drop(n)
	default:
		c.fail(n)
		c.enter(now, n, Negative)
	}
}

// spread is a random time between half of mean and half as much again (RFC 4861
// section 10, MIN_RANDOM_FACTOR and MAX_RANDOM_FACTOR).
func (c *Cache) spread(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(c.random.Int64N(int64(mean)+1))
}
