package fault

import (
	"math/rand/v2"
	"slices"

	"loam/block"
)

// cache holds the sectors that were written since the last flush.
type cache struct {
	sector  int64
	sectors map[int64][]byte // sectors that are not yet on the device, by offset
}

func newCache(info block.Info) *cache {
	return &cache{sector: int64(info.LogicalSector), sectors: map[int64][]byte{}}
}

// do carries out a request, using the cache that lies in front of the device.
func (c *cache) do(d block.Device, s *single, queue int, r *block.Request) error {
	switch r.Op {
	case block.Read:
		err := s.do(d, queue, *r)
		c.overlay(r)
		return err
	case block.Flush:
		if err := c.writeOut(d, s, queue); err != nil {
			return err
		}
		return s.do(d, queue, *r)
	case block.Write:
		if r.Flags&block.FUA == 0 {
			c.keep(r)
			return nil
		}
	}
	c.forget(r) // the data on the device is newer than that in the cache
	return s.do(d, queue, *r)
}

// each calls f for every sector of a request with data.
func (c *cache) each(r *block.Request, f func(at int64, p []byte)) {
	at := r.Offset
	for _, p := range r.Data {
		for ; len(p) > 0; p, at = p[c.sector:], at+c.sector {
			f(at, p[:c.sector])
		}
	}
}

func (c *cache) keep(r *block.Request) {
	c.each(r, func(at int64, p []byte) { c.sectors[at] = slices.Clone(p) })
}

func (c *cache) overlay(r *block.Request) {
	c.each(r, func(at int64, p []byte) { copy(p, c.sectors[at]) })
}

func (c *cache) forget(r *block.Request) {
	for at := range c.sectors {
		if at >= r.Offset && at < r.Offset+r.Bytes() {
			delete(c.sectors, at)
		}
	}
}

// offsets returns the offsets of the cached sectors in rising order.
func (c *cache) offsets() []int64 {
	all := make([]int64, 0, len(c.sectors))
	for at := range c.sectors {
		all = append(all, at)
	}
	slices.Sort(all)
	return all
}

// writeOut writes all cached sectors to the device and removes them from the cache. After an error
// the remaining ones stay in it.
func (c *cache) writeOut(d block.Device, s *single, queue int) error {
	for _, at := range c.offsets() {
		w := block.Request{Op: block.Write, Offset: at, Data: [][]byte{c.sectors[at]}}
		if err := s.do(d, queue, w); err != nil {
			return err
		}
		delete(c.sectors, at)
	}
	return nil
}

// cut simulates a power failure: it writes some of the cached sectors to the device and drops the others, as
// the seed decides. It returns the number of dropped sectors.
func (c *cache) cut(d block.Device, seed uint64) (dropped uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	keep := rng.Float64()
	o := block.NewIO(d)
	for _, at := range c.offsets() {
		if rng.Float64() >= keep {
			dropped++
			continue
		}
		if _, err := o.WriteAt(c.sectors[at], at); err != nil {
			dropped++
		}
	}
	clear(c.sectors)
	return dropped
}
