// Package crash builds the contents that a block device may have after a power failure, from a log
// of its requests (block/trace).
//
// It implements the durability rules of package block. A Cursor is at a point of the log, the
// moment of the failure, and has for each sector the values that it may then hold:
//
//	settled     one value: it is in the image that all states of this point share
//	unsettled   several: the value before, and the values of writes that are not durable
//
// Sectors are independent, so the rules allow every combination of values. There are too many
// combinations to try all, so a seed chooses a state. Each seed belongs to one of four styles:
// whole writes lost, writes torn at a sector, writes applied in another order, or each sector
// chosen separately. The last style can reach all states; the others are the most likely behavior
// of real devices. Lost and Kept return the two extremes.
package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"loam/block"
	"loam/block/memory"
	"loam/block/trace"
)

// never is the index of an event that is not in the log.
const never = int(^uint(0) >> 1)

// write is a request that changes sectors: Write, WriteZeroes or Discard.
type write struct {
	event     trace.Event
	submitted int // index in the log of the write's submission
	completed int // index in the log of the write's completion, or never
	doomed    int // index in the log of the failed flush that covered the write, or never; later flushes do not cover the write
}

// before reports whether w had completed when v was submitted.
func (w *write) before(v *write) bool { return w.completed < v.submitted }

// sector is a sector that may have one of several values after a crash.
type sector struct {
	writes []*write // writes whose value the sector may have, in order of submission
	old    bool     // the sector may have the value of the settled image
}

// Cursor is a point in time of a log. One goroutine at a time uses it.
type Cursor struct {
	events     []trace.Event
	at         int // number of events before the point in time
	sectorSize int64
	settled    *memory.Device
	unsettled  map[int64]*sector // the sectors that may have several values, by offset
	writes     map[uint64]*write // the writes in flight, by the ID of their request
	flushes    map[uint64]int    // the flushes in flight, by the ID of their request; the values are the indices in the log of their submissions
	waiting    []*write          // completed writes that are not durable yet; a successful flush that was submitted after their completion makes them durable
}

// New returns a cursor at the beginning of a log. base is the contents before the first event; it
// is copied. A sector is never torn: it holds one of the written values.
func New(base *memory.Device, events []trace.Event) *Cursor {
	return &Cursor{
		events: events, sectorSize: int64(base.Info().LogicalSector), settled: base.Snapshot(),
		unsettled: map[int64]*sector{}, writes: map[uint64]*write{}, flushes: map[uint64]int{},
	}
}

// At returns the number of events that have happened.
func (c *Cursor) At() int { return c.at }

// Unsettled returns the number of sectors that have several values to choose from.
func (c *Cursor) Unsettled() int { return len(c.unsettled) }

// Next processes one event. It returns false at the end of the log. It returns an error if the
// event does not fit the device.
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

// submit starts a write: from now on its sectors may have its value.
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
			// The write is never durable: its sectors stay uncertain until they are written again.
		case w.event.Flags&block.FUA != 0:
			c.settle(w)
		default:
			c.waiting = append(c.waiting, w)
		}
	}
}

// flushed ends a flush that was submitted at index at. A successful flush makes the writes that it
// covers durable. After a failed flush, later flushes do not cover them (rule 8).
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

// settle makes a write durable: its sectors can no longer have an older value.
func (c *Cursor) settle(w *write) {
	for at := w.event.Offset; at < w.event.Offset+w.event.Length; at += c.sectorSize {
		s := c.unsettled[at]
		if s == nil || !slices.Contains(s.writes, w) {
			continue // a later write of the sector is durable already
		}
		s.old = false
		s.writes = slices.DeleteFunc(s.writes, func(o *write) bool { return o != w && o.before(w) })
		if len(s.writes) == 1 {
			c.apply(block.NewIO(c.settled), at, w)
			delete(c.unsettled, at)
		}
	}
}

// apply writes the value of a write to a sector of an image.
func (c *Cursor) apply(o *block.IO, at int64, w *write) {
	var err error
	switch w.event.Op {
	case block.Write:
		from := at - w.event.Offset
		_, err = o.WriteAt(w.event.Data[from:from+c.sectorSize], at)
	case block.WriteZeroes:
		err = o.WriteZeroes(at, c.sectorSize, 0)
	default: // after a discard the contents of the sectors are undefined
		_, err = o.WriteAt(slices.Repeat([]byte{junk}, int(c.sectorSize)), at)
	}
	if err != nil {
		panic("crash: an image does not take a sector: " + err.Error())
	}
}

// junk is the byte that fills discarded sectors.
const junk = 0xdb

// offsets returns the offsets of the unsettled sectors in rising order, so that a seed always
// chooses the same state.
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

// State returns the state that a seed chooses.
func (c *Cursor) State(seed uint64) *memory.Device {
	return c.image(newDice(rand.New(rand.NewPCG(seed, uint64(c.at))), int(seed%styles)).choose)
}

// image builds a state. The function choose returns the write whose value a sector has, or nil for the settled value.
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
