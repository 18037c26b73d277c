// Package crash builds the contents that a block device may have after a power
// failure, from a log of its requests (block/trace).
//
// It is the rules of package block as code. A cursor stands at a point of the log, the
// moment of the failure, and knows for each sector the values that it may hold then:
//
//	settled     one value: it is in the image that all states of this point share
//	unsettled   several: the value before, and those of writes that are not durable
//
// Every combination of values is allowed by the rules, since sectors are independent.
// There are too many to try all, so a state is chosen by a seed. Each seed belongs to
// one of four styles: whole writes lost, writes torn at a sector, writes applied in
// another order, or every sector on its own; the last reaches all states, the others
// are what devices do most likely. Lost and Kept are the two extremes.
package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"loam/block"
	"loam/block/memory"
	"loam/block/trace"
)

// never is the place in the log of what has not happened.
const never = int(^uint(0) >> 1)

// write is a request that changes sectors.
type write struct {
	event     trace.Event
	submitted int // place in the log
	completed int // place in the log, or never
	doomed    int // place where a flush that covered it failed, or never: later ones do not cover it
}

// before reports whether w had completed when v was submitted.
func (w *write) before(v *write) bool { return w.completed < v.submitted }

// sector is one that is unsettled.
type sector struct {
	writes []*write // whose values it may have, in order of submission
	old    bool     // it may have its value in the settled image
}

// Cursor is a point of a log. It has one user.
type Cursor struct {
	events     []trace.Event
	at         int // events before it have happened
	sectorSize int64
	settled    *memory.Device
	unsettled  map[int64]*sector // by offset
	writes     map[uint64]*write // in flight, by ID
	flushes    map[uint64]int    // in flight, by ID: their place
	waiting    []*write          // completed, and a flush may make them durable
}

// New returns a cursor at the beginning of a log. base is the contents before the
// first event; it is copied. Sectors are whole: one is written or not.
func New(base *memory.Device, events []trace.Event) *Cursor {
	return &Cursor{
		events: events, sectorSize: int64(base.Info().LogicalSector), settled: base.Snapshot(),
		unsettled: map[int64]*sector{}, writes: map[uint64]*write{}, flushes: map[uint64]int{},
	}
}

// At returns how many events have happened.
func (c *Cursor) At() int { return c.at }

// Unsettled returns the number of sectors that have several values to choose from.
func (c *Cursor) Unsettled() int { return len(c.unsettled) }

// Next lets one event happen. It returns false at the end of the log. An error says
// that the log makes no sense.
func (c *Cursor) Next() (bool, error) {
	if c.at == len(c.events) {
		return false, nil
	}
	e := &c.events[c.at]
	var err error
	switch {
	case e.Completed:
		c.complete(e)
	case e.Op == block.Flush:
		c.flushes[e.ID] = c.at
	case e.Op.Writes():
		err = c.submit(e)
	}
	c.at++
	return err == nil, err
}

// submit has a write begin: from now on its sectors may have its value.
func (c *Cursor) submit(e *trace.Event) error {
	length := e.Length
	if (e.Offset|length)%c.sectorSize != 0 || e.Offset < 0 || length < 0 || length > c.settled.Size()-e.Offset ||
		e.Op == block.Write && int64(len(e.Data)) != length {
		return fmt.Errorf("crash: event %d: a write of %d bytes at %d of %d", c.at, length, e.Offset, c.settled.Size())
	}
	w := &write{event: *e, submitted: c.at, completed: never, doomed: never}
	c.writes[e.ID] = w
	for at := e.Offset; at < e.Offset+length; at += c.sectorSize {
		s := c.unsettled[at]
		if s == nil {
			s = &sector{old: true}
			c.unsettled[at] = s
		}
		s.writes = append(s.writes, w)
	}
	return nil
}

// complete ends a request.
func (c *Cursor) complete(e *trace.Event) {
	if at, ok := c.flushes[e.ID]; ok {
		delete(c.flushes, e.ID)
		c.flushed(at, e.Failed)
	} else if w, ok := c.writes[e.ID]; ok {
		delete(c.writes, e.ID)
		w.completed = c.at
		switch {
		case e.Failed || w.event.Op == block.Discard:
			// It stays as it is until it is written over.
		case w.event.Flags&block.FUA != 0:
			c.settle(w)
		default:
			c.waiting = append(c.waiting, w)
		}
	}
}

// flushed ends a flush that was submitted at a place. It makes durable the writes that
// it covers or, if it failed, keeps later flushes from that (rule 8).
func (c *Cursor) flushed(at int, failed bool) {
	c.waiting = slices.DeleteFunc(c.waiting, func(w *write) bool {
		covered := w.completed < at && w.doomed > at
		if covered && failed {
			w.doomed = min(w.doomed, c.at)
		} else if covered {
			c.settle(w)
		}
		return covered && !failed
	})
}

// settle makes a write durable: no older value of its sectors can appear any more.
func (c *Cursor) settle(w *write) {
	for at := w.event.Offset; at < w.event.Offset+w.event.Length; at += c.sectorSize {
		s := c.unsettled[at]
		if s == nil || !slices.Contains(s.writes, w) {
			continue // something later is durable there
		}
		s.old = false
		s.writes = slices.DeleteFunc(s.writes, func(o *write) bool { return o != w && o.before(w) })
		if len(s.writes) == 1 {
			c.apply(block.NewIO(c.settled), at, w)
			delete(c.unsettled, at)
		}
	}
}

// apply gives a sector the value of a write.
func (c *Cursor) apply(o *block.IO, at int64, w *write) {
	var err error
	switch w.event.Op {
	case block.Write:
		from := at - w.event.Offset
		_, err = o.WriteAt(w.event.Data[from:from+c.sectorSize], at)
	case block.WriteZeroes:
		err = o.WriteZeroes(at, c.sectorSize, 0)
	default: // a discard: contents that nobody should rely on
		_, err = o.WriteAt(slices.Repeat([]byte{junk}, int(c.sectorSize)), at)
	}
	if err != nil {
		panic("crash: an image does not take a sector: " + err.Error())
	}
}

// junk fills discarded sectors.
const junk = 0xdb

// offsets returns the unsettled sectors, in order: a seed then means the same each time.
func (c *Cursor) offsets() []int64 {
	all := make([]int64, 0, len(c.unsettled))
	for at := range c.unsettled {
		all = append(all, at)
	}
	slices.Sort(all)
	return all
}

// Lost returns the state in which each sector has its oldest value.
func (c *Cursor) Lost() *memory.Device {
	return c.image(func(_ int64, s *sector) *write {
		if s.old {
			return nil
		}
		return s.writes[0]
	})
}

// Kept returns the state in which each sector has its latest value.
func (c *Cursor) Kept() *memory.Device {
	return c.image(func(_ int64, s *sector) *write { return s.writes[len(s.writes)-1] })
}

// State returns a state that a seed chooses.
func (c *Cursor) State(seed uint64) *memory.Device {
	return c.image(newDice(rand.New(rand.NewPCG(seed, uint64(c.at))), int(seed%styles)).choose)
}

// image builds a state. choose returns the write whose value a sector has; nil: the
// settled value.
func (c *Cursor) image(choose func(at int64, s *sector) *write) *memory.Device {
	d := c.settled.Snapshot()
	o := block.NewIO(d)
	for _, at := range c.offsets() {
		if w := choose(at, c.unsettled[at]); w != nil {
			c.apply(o, at, w)
		}
	}
	return d
}
