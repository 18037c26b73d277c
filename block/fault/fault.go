// Package fault wraps a block device and injects faults that the rules of package block allow:
// requests fail, writes are torn at a sector, requests overtake others between flushes or are
// delayed, the device vanishes, and a power cut drops writes that were not flushed. A Rule may also
// break these rules.
//
// With the same seed, the same sequence of submissions has the same faults, independent of timing:
// the random numbers for a request are drawn in the order of submission.
//
// One goroutine, Device.loop, carries out one request at a time on the wrapped device. Read in this
// order: fault.go, machine.go (what happens to a request, and when; pure), cache.go (the writes
// that a power cut may drop).
package fault

import (
	"fmt"
	"sync"
	"time"

	"loam/block"
	"loam/internal/crew"
)

// Config describes the faults. Rates are probabilities from 0 to 1.
type Config struct {
	Seed uint64
	// Fail is the share of requests that fail with ErrIO and do nothing, for each operation.
	Fail [block.Ops]float64
	// Tear is the probability that a write of several sectors stores only the first sectors, and fails with
	// ErrIO.
	Tear float64
	// Reorder is the probability that a request is held back until some later requests, at most
	// ReorderDistance, have overtaken it. The wait ends early when a flush is submitted, or after
	// ReorderTime.
	Reorder         float64
	ReorderDistance int           // number of requests; 0: 4
	ReorderTime     time.Duration // maximum delay; 0: 10 ms
	// Delay is added to the time of every request, and a random part of Jitter.
	Delay, Jitter time.Duration
	// Rules make selected requests fail.
	Rules []Rule
	// VanishAfter is the number of requests after which the device vanishes; 0: never.
	VanishAfter int
	// Volatile adds a cache of unlimited size, which holds writes until a flush. Cut drops some of
	// them.
	Volatile bool
}

// Rule makes matching requests fail.
type Rule struct {
	Ops      []block.Op // operations of the requests that match; empty: all
	From, To int64      // matches requests that touch this range of bytes; To 0: all requests
	Skip     int        // number of matching requests that succeed before the first one that fails
	Times    int        // number of requests that fail after that; 0: all
	Err      error      // the error of a request that fails; nil: ErrIO
}

// matches reports whether the rule applies to a request.
func (u *Rule) matches(r *block.Request) bool {
	about := len(u.Ops) == 0
	for _, op := range u.Ops {
		about = about || op == r.Op
	}
	return about && (u.To == 0 || r.Op != block.Flush && r.Offset < u.To && u.From < r.Offset+r.Bytes())
}

// Counts are the counters of injected faults.
type Counts struct {
	Requests  uint64 // number of submitted requests
	Failed    uint64
	Torn      uint64
	Reordered uint64 // number of requests that at least one later request has overtaken
	Dropped   uint64 // number of sectors that Cut dropped
}

// Device is a block device that wraps another one and has faults.
type Device struct {
	block.Device
	info   block.Info
	stats  block.Counters
	cache  *cache // the volatile cache, which only loop uses; nil: no cache
	single single // the state of one request, which only loop uses
	crew   crew.Crew

	closing sync.Once
	err     error // result of closing the wrapped device

	mu      sync.Mutex // guards the fields below
	machine *machine
	counts  Counts
	gone    error // why requests are rejected; nil: they are accepted
	closed  bool
	// work has capacity 1. A goroutine that changes the field machine, gone or cut sends a
	// value, without blocking: if the channel is full, loop has not taken the earlier value
	// yet, and will see the change when it does. Only loop receives. It is never closed.
	work chan struct{}
	cut  *uint64 // seed of a power cut that loop must carry out
	done chan struct{}
}

// New returns a device with faults that wraps d. When it is closed, it closes d.
func New(d block.Device, c Config) *Device {
	f := &Device{Device: d, info: d.Info(), machine: newMachine(c, d.Info().LogicalSector), work: make(chan struct{}, 1), done: make(chan struct{})}
	f.single.to = block.NewCompletions()
	if c.Volatile {
		f.cache = newCache(f.info)
		f.info.Volatile, f.info.FUA = true, false
	}
	f.crew.Start(f.loop)
	return f
}

// Info implements block.Device.
func (f *Device) Info() block.Info { return f.info }

// Stats implements block.Device: the counters of this wrapper.
func (f *Device) Stats() block.Stats { return f.stats.Stats() }

// Counts returns the faults so far.
func (f *Device) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts
	c.Reordered = f.machine.reordered
	return c
}

func (f *Device) wake() {
	select {
	case f.work <- struct{}{}:
	default:
	}
}

// Submit implements block.Device.
func (f *Device) Submit(queue int, rs []*block.Request) {
	size := f.Size()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rs {
		err := r.Check(&f.info, size)
		if f.gone != nil {
			err = f.gone
		}
		if err != nil {
			f.stats.Reject(r, err)
			continue
		}
		f.counts.Requests++
		f.machine.push(time.Now(), r, queue)
		if n := f.machine.VanishAfter; n > 0 && f.counts.Requests == uint64(n) {
			f.vanish()
		}
	}
	f.wake()
}

// Vanish makes the device vanish: from now on all requests come back with ErrGone. The contents of
// the cache are lost.
func (f *Device) Vanish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vanish()
	f.wake()
}

// vanish returns all requests that have not been started. mu is held.
func (f *Device) vanish() {
	if f.gone == nil {
		f.gone = block.ErrGone
	}
	f.machine.drain(f.gone)
}

// Cut simulates a power failure: all requests come back with ErrGone, and each sector in the cache
// is either written to the wrapped device or lost, as the seed decides. After Cut returns, the
// wrapped device may be used directly.
func (f *Device) Cut(seed uint64) {
	f.mu.Lock()
	f.vanish()
	if f.cut == nil && !f.closed {
		f.cut = &seed
	}
	closed := f.closed
	f.mu.Unlock()
	if !closed {
		f.wake()
		<-f.done
	}
}

// Close implements block.Device. Unflushed writes in the cache are lost.
func (f *Device) Close() error {
	f.closing.Do(func() {
		f.mu.Lock()
		f.closed, f.gone = true, block.ErrClosed
		f.machine.drain(f.gone)
		f.mu.Unlock()
		f.wake()
		f.crew.Wait()
		f.err = f.Device.Close()
	})
	return f.err
}

// loop carries out requests when they are due, until the device is closed or cut.
func (f *Device) loop() {
	defer close(f.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e, ok, wait, end := f.next()
		switch {
		case end:
			return
		case ok:
			f.carryOut(e)
			continue
		}
		timer.Reset(wait)
		select {
		case <-f.work:
		case <-timer.C:
		}
	}
}

// next returns the next request that is due, or the time until one is due.
func (f *Device) next() (e entry, ok bool, wait time.Duration, end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != nil && f.cache != nil {
		f.counts.Dropped += f.cache.cut(f.Device, *f.cut)
	}
	if f.cut != nil || f.closed {
		return e, false, 0, true
	}
	now := time.Now()
	if e, ok = f.machine.pop(now); ok {
		return e, true, 0, false
	}
	return e, false, f.machine.wait(now), false
}

// carryOut carries out one request on the cache or on the wrapped device, and returns the request to its user.
func (f *Device) carryOut(e entry) {
	r, err := e.request, e.err
	switch {
	case err != nil:
		f.count(&f.counts.Failed)
	case e.sectors > 0:
		f.count(&f.counts.Torn)
		part := shortened(r, e.sectors*f.info.LogicalSector)
		if err = f.do(e.queue, &part); err == nil {
			err = fmt.Errorf("%w: torn after %d sectors", block.ErrIO, e.sectors)
		}
	default:
		err = f.do(e.queue, r)
	}
	f.stats.Finish(r, err)
}

func (f *Device) count(n *uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

func (f *Device) do(queue int, r *block.Request) error {
	if f.cache != nil {
		return f.cache.do(f.Device, &f.single, queue, r)
	}
	return f.single.do(f.Device, queue, *r)
}

// shortened returns a write of the first n bytes of r.
func shortened(r *block.Request, n int) block.Request {
	part := *r
	part.Data = nil
	for _, p := range r.Data {
		if n == 0 {
			break
		}
		k := min(n, len(p))
		part.Data, n = append(part.Data, p[:k]), n-k
	}
	return part
}

// single carries out one request at a time on a device.
type single struct {
	to      *block.Completions
	request block.Request
	batch   [1]*block.Request
}

func (s *single) do(d block.Device, queue int, r block.Request) error {
	s.request = r
	s.request.To, s.batch[0] = s.to, &s.request
	d.Submit(queue, s.batch[:])
	s.to.Wait(s.batch[:])
	return s.request.Err
}
