// Package timer implements the timers of a shard: a hierarchical timing wheel (Varghese and Lauck, "Hashed
// and hierarchical timing wheels", 1987). It holds all deadlines of all connections, so the shard arms a
// single timer of its own. Scheduling, rescheduling and cancelling take constant time and allocate nothing;
// an Entry is embedded in its owner.
//
// # Time
//
// A deadline is rounded up to a whole tick of 65.5 µs: an entry fires up to a tick late and never early. A
// tick is read as eight digits of base 64. The wheel has one level per digit. An entry lies on the level of
// the highest digit in which its tick differs from the current one, in the slot of that digit's value. Three
// properties follow:
//
//   - An entry d ticks away moves to a lower level at most log64(d) times before it fires.
//   - On each level, only slots above the current digit are in use, and all entries of a lower
//     level come before all entries of a higher one. The next slot to visit is therefore the lowest
//     set bit of the lowest level in use. No scan is needed, and idle time costs nothing.
//   - Eight levels cover the range of a time.Duration.
//
// # Postponing
//
// TCP moves its retransmission timer at every acknowledgment, nearly always to a later time. Moving an entry
// to a later time only stores the new tick in it. The entry stays in its slot and moves when that slot is
// visited. Next may therefore be early: it returns when the wheel must be advanced, not when an entry fires.
//
// Rejected: a heap (log n and a cache miss per level at every acknowledgment); the runtime's timers (70 to 90
// ns per reset, and a goroutine to fire in).
package timer

import (
	"math"
	"math/bits"
	"time"
)

// Never is the deadline of a wheel or entry without a timer.
const Never = time.Duration(1<<63 - 1)

// Lifetime returns the end of a lifetime in seconds that begins now, as sent by IPv6 routers and servers. All
// ones mean Never (RFC 4861 section 4.6.2, RFC 8415 section 7.7).
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
	levels    = 8 // 16 + 8*6 = 64 bits, which are all bits of a Duration
)

// Entry is one deadline. The zero value is not scheduled. It must not be copied while it is scheduled, and
// belongs to one wheel at a time.
type Entry struct {
	// Owner is the value that contains the entry. The fire function uses it, and the wheel does not.
	Owner any

	next, prev *Entry // neighbours in the circular list of the slot; nil: not scheduled
	tick       uint64 // tick at which the entry fires
	visit      uint64 // tick at which the slot of the entry is visited, at most tick
	level      uint8
	slot       uint8
}

// Scheduled reports whether the entry is on a wheel.
func (e *Entry) Scheduled() bool { return e.next != nil }

// Wheel is a set of entries. The zero value is empty and its time is zero. It belongs to one goroutine.
type Wheel struct {
	elapsed uint64         // all slots up to this tick have been visited
	now     uint64         // tick that Advance has reached or is advancing to
	count   int            // number of scheduled entries
	halfway int            // level whose current slot AdvanceSome has visited only in part; 0: none
	busy    uint8          // bit l is set if level l has entries
	used    [levels]uint64 // bit s of element l is set if list[l][s] is not empty
	list    [levels][slots]*Entry
}

// Len returns the number of scheduled entries.
func (w *Wheel) Len() int { return w.count }

// Schedule makes e fire once at the time when, instead of any earlier setting. A time in
// the past means the next tick. The time Never cancels e.
func (w *Wheel) Schedule(e *Entry, when time.Duration) {
	if when == Never {
		w.Cancel(e)
		return
	}
	tick := max(roundUp(when), w.now+1)
	if e.Scheduled() {
		if tick >= e.visit { // tick is not before the time of the slot: see "Postponing"
			e.tick = tick
			return
		}
		w.unlink(e)
	}
	e.tick = tick
	w.insert(e)
}

// Cancel removes e from the wheel. It has no effect if e is not scheduled.
func (w *Wheel) Cancel(e *Entry) {
	if e.Scheduled() {
		w.unlink(e)
	}
}

// Next returns the time at which Advance must be called: at or before the first deadline, rounded up to a tick. It returns
// Never if no entry is scheduled.
func (w *Wheel) Next() time.Duration {
	if w.busy == 0 {
		return Never
	}
	_, _, tick := w.nextSlot()
	return time.Duration(tick << tickBits)
}

// Advance fires every entry whose time is not after now, in order of their ticks. The
// function fire may schedule and cancel any entry, including e. An entry that it
// schedules for the time now or earlier fires at the next tick, not in this call. If now
// is earlier than before, it is ignored.
func (w *Wheel) Advance(now time.Duration, fire func(e *Entry)) {
	w.AdvanceSome(now, math.MaxInt, fire)
}

// movesPerFire is the number of entries that AdvanceSome may move between levels per entry that it may fire.
// Moving an entry is cheap, but connections that are opened or used together share a slot, and a slot may
// hold all of them.
const movesPerFire = 16

// AdvanceSome is like Advance, but fires only the first entries, and bounds its other
// work in proportion. The parameter most is the maximum number of entries. If due entries
// or work are left, Next is not after now, and the next call continues.
func (w *Wheel) AdvanceSome(now time.Duration, most int, fire func(e *Entry)) {
	w.now = max(w.now, uint64(max(now, 0))>>tickBits)
	moves := math.MaxInt
	if most < math.MaxInt/movesPerFire {
		moves = most * movesPerFire
	}
	for w.busy != 0 {
		level, slot, tick := w.nextSlot()
		if tick > w.now {
			break
		}
		w.elapsed, w.halfway = tick, level
		// No entry enters this slot meanwhile, because its digit is now the current one. The slot therefore
		// becomes empty, whatever fire does. Entries fire only on the lowest level, where all entries of a
		// slot have the same tick, so the loop may leave it before it is empty. It may leave a slot of
		// another level, too: nextSlot returns that slot until it is empty.
		for w.list[level][slot] != nil {
			e := w.list[level][slot]
			due := level == 0 && e.tick == tick
			switch {
			case due && most == 0, !due && moves == 0:
				return
			case !due:
				moves--
				w.unlink(e)
				w.insert(e)
				continue
			}
			most--
			w.unlink(e)
			fire(e)
		}
	}
	w.elapsed, w.halfway = w.now, 0
}

// lastTick is the last tick that a Duration can express.
const lastTick = uint64(Never) >> tickBits

// roundUp returns the first tick that is not before t, at most lastTick.
func roundUp(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	return min(uint64(t-1)>>tickBits+1, lastTick)
}

// nextSlot returns the slot to visit next and the tick at which it begins. busy must not be zero.
func (w *Wheel) nextSlot() (level, slot int, tick uint64) {
	if w.halfway > 0 { // the slot that was visited in part begins at the tick elapsed
		if slot := int(w.elapsed >> (w.halfway * digitBits) % slots); w.list[w.halfway][slot] != nil {
			return w.halfway, slot, w.elapsed
		}
	}
	level = bits.TrailingZeros8(w.busy)
	slot = bits.TrailingZeros64(w.used[level])
	shift := level * digitBits
	above := w.elapsed >> (shift + digitBits) << digitBits
	return level, slot, (above | uint64(slot)) << shift
}

// insert puts e into the slot for e.tick, which must be after elapsed.
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

// unlink removes e from its list.
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
