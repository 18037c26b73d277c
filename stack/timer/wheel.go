// Package timer is the alarm clock of a shard: a hierarchical timing wheel
// (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987) that
// carries every deadline of every connection, so that the shard arms a single
// timer of its own. Scheduling, rescheduling and cancelling take constant time
// and no memory; entries are embedded in what they belong to.
//
// # Time
//
// A deadline is rounded up to a whole tick of 65.5 µs: an entry fires up to a
// tick late and never early. A tick is read as eight digits of base 64. The
// wheel has a level a digit, and an entry lies on the level of the highest digit
// in which its tick differs from the present one, in the slot of that digit's
// value. Three things follow:
//
//   - an entry that is d ticks away moves to a lower level log64(d) times at
//     most before it fires;
//   - on each level only slots above the present digit are in use, and all of a
//     lower level comes before all of a higher one, so that the next slot to
//     visit is the lowest set bit of the lowest level that has one: no scan, and
//     idle time costs nothing however long;
//   - eight levels reach as far as a time.Duration does.
//
// # Putting off
//
// TCP moves its retransmission timer at every acknowledgement, nearly always to
// later. Moving an entry to later only writes the new tick into it: it stays in
// its slot and finds its new place when that slot is visited. Hence Next may be
// early: it is when the wheel wants to be advanced, not when something fires.
//
// Rejected: a heap (log n and a cache miss a level at every acknowledgement);
// the runtime's timers (70 to 90 ns for each reset, and a goroutine to fire in).
package timer

import (
	"math/bits"
	"time"
)

// Never is the deadline of a wheel, or of an entry, that waits for nothing.
const Never = time.Duration(1<<63 - 1)

// Lifetime is when a lifetime in seconds ends that begins now, as routers and servers of IPv6
// tell it: Never for all ones (RFC 4861 section 4.6.2, RFC 8415 section 7.7).
func Lifetime(now time.Duration, seconds uint32) time.Duration {
	if seconds == 1<<32-1 {
		return Never
	}
	return now + time.Duration(seconds)*time.Second
}

// Tick is the resolution of the wheel.
const Tick = time.Duration(1) << tickBits

const (
	tickBits  = 16
	digitBits = 6
	slots     = 1 << digitBits
	levels    = 8 // 16 + 8*6 bits are all that a Duration has
)

// Entry is one deadline. The zero value is not scheduled. It must not be copied
// while it is, and belongs to one wheel at a time.
type Entry struct {
	// Owner is for whoever fires: what the entry is embedded in. The wheel does
	// not look at it.
	Owner any

	next, prev *Entry // in its slot's list, which is circular; nil: not scheduled
	tick       uint64 // when to fire
	visit      uint64 // when its slot is looked at, at most tick
	level      uint8
	slot       uint8
}

// Scheduled reports whether the entry is on a wheel.
func (e *Entry) Scheduled() bool { return e.next != nil }

// Wheel is a set of entries. The zero value is empty and stands at time zero.
// It belongs to one goroutine.
type Wheel struct {
	elapsed uint64         // slots up to this tick have been visited
	now     uint64         // Advance is on its way to this tick, or has reached it
	count   int            // entries scheduled
	busy    uint8          // bit l: level l has entries
	used    [levels]uint64 // bit s of word l: list[l][s] is not empty
	list    [levels][slots]*Entry
}

// Len is the number of entries scheduled.
func (w *Wheel) Len() int { return w.count }

// Schedule makes e fire once at when, instead of any time that was set before. A
// time in the past is taken for the next tick; Never cancels.
func (w *Wheel) Schedule(e *Entry, when time.Duration) {
	if when == Never {
		w.Cancel(e)
		return
	}
	tick := max(roundUp(when), w.now+1)
	if e.Scheduled() {
		if tick >= e.visit { // later than its slot, or in it: see "Putting off"
			e.tick = tick
			return
		}
		w.unlink(e)
	}
	e.tick = tick
	w.insert(e)
}

// Cancel takes e off the wheel. An entry that is not scheduled stays so.
func (w *Wheel) Cancel(e *Entry) {
	if e.Scheduled() {
		w.unlink(e)
	}
}

// Next is when to call Advance again: at or before the first deadline, rounded
// up to a tick. Never if nothing is scheduled.
func (w *Wheel) Next() time.Duration {
	if w.busy == 0 {
		return Never
	}
	_, _, tick := w.nextSlot()
	return time.Duration(tick << tickBits)
}

// Advance fires every entry whose time is not after now, those of an earlier
// tick first. fire may schedule and cancel any entry, e included; what it
// schedules for now or before fires at the next tick, not in this call. Time
// that runs backwards is ignored.
func (w *Wheel) Advance(now time.Duration, fire func(e *Entry)) {
	w.now = max(w.now, uint64(max(now, 0))>>tickBits)
	for w.busy != 0 {
		level, slot, tick := w.nextSlot()
		if tick > w.now {
			break
		}
		w.elapsed = tick
		// Nothing comes into this slot meanwhile: its digit is the present one
		// now. So it runs empty, whatever fire does.
		for w.list[level][slot] != nil {
			e := w.list[level][slot]
			w.unlink(e)
			if e.tick > tick {
				w.insert(e)
			} else {
				fire(e)
			}
		}
	}
	w.elapsed = w.now
}

// lastTick is the last one that a Duration can name.
const lastTick = uint64(Never) >> tickBits

// roundUp is the first tick that is not before t, lastTick if there is none.
func roundUp(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	return min(uint64(t-1)>>tickBits+1, lastTick)
}

// nextSlot finds the slot that is to be visited next and the tick at which it
// begins. There is one: busy is not zero.
func (w *Wheel) nextSlot() (level, slot int, tick uint64) {
	level = bits.TrailingZeros8(w.busy)
	slot = bits.TrailingZeros64(w.used[level])
	shift := level * digitBits
	above := w.elapsed >> (shift + digitBits) << digitBits
	return level, slot, (above | uint64(slot)) << shift
}

// insert puts e into the slot for e.tick, which is after elapsed.
func (w *Wheel) insert(e *Entry) {
	level := (bits.Len64(e.tick^w.elapsed) - 1) / digitBits
	shift := level * digitBits
	e.level, e.slot = uint8(level), uint8(e.tick>>shift%slots)
	e.visit = e.tick >> shift << shift
	w.busy |= 1 << level
	w.used[level] |= 1 << e.slot
	w.count++

	head := &w.list[level][e.slot]
	if *head == nil {
		*head, e.next, e.prev = e, e, e
		return
	}
	e.next, e.prev = *head, (*head).prev
	e.prev.next, e.next.prev = e, e
}

// unlink takes e out of its list.
func (w *Wheel) unlink(e *Entry) {
	head := &w.list[e.level][e.slot]
	if e.next == e {
		*head = nil
		if w.used[e.level] &^= 1 << e.slot; w.used[e.level] == 0 {
			w.busy &^= 1 << e.level
		}
	} else {
		if *head == e {
			*head = e.next
		}
		e.prev.next, e.next.prev = e.next, e.prev
	}
	e.next, e.prev = nil, nil
	w.count--
}
