//go:build linux

package gen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/gen/method"
	"loam/gen/pace"
)

// run is a run in progress. Run itself owns all but the lanes, which belong to
// their workers until these have ended; the atomics in them are read meanwhile.
type run struct {
	Config
	method  method.Method
	tagged  int // the Batch of streams with tags
	workers []*worker
	streams [][]*lane // by stream: its lane on each queue

	start time.Time
	last  Sample
	stop  atomic.Bool
}

// Run sends the streams of c and returns when they have sent their counts, when
// the time is over or when ctx is done, which is no error. The report is of what
// was sent, also where there is an error.
func Run(ctx context.Context, c Config) (Report, error) {
	r := &run{Config: c.withDefaults()}
	if err := r.check(); err != nil {
		return Report{}, err
	}
	var err error
	if r.method, err = method.ByName(r.Method); err != nil {
		return Report{}, bad("%v", err)
	}
	r.tagged = r.Batch
	if r.Batch == 0 {
		r.Batch, r.tagged = r.method.Batch, min(r.method.Batch, taggedBatch)
	}
	defer r.close()
	if err := r.open(); err != nil {
		return Report{}, err
	}
	if r.Ready != nil {
		if err := r.Ready(); err != nil {
			return Report{}, err
		}
	}
	before := int64(UnknownLink)
	if r.Method != "tap" { // whose frames the interface has received
		before = linkFrames(r.Interface)
	}
	err = r.drive(ctx)
	return r.report(before), err
}

// open compiles the streams and opens the senders.
func (r *run) open() error {
	// The stack of the method loam has threads of its own, which want to be near.
	pin := !r.Float && r.Method != "loam"
	for q := range r.Queues {
		r.workers = append(r.workers, &worker{queue: q, pin: pin, steps: r.Steps})
	}
	r.streams = make([][]*lane, len(r.Streams))
	longest := 0
	var ends []endpoints
	for i := range r.Streams {
		s := &r.Streams[i]
		p, e, err := r.compile(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		ends = append(ends, e)
		longest = max(longest, p.MaxLen())
		for q := range r.Queues {
			r.streams[i] = append(r.streams[i], newLane(s, p, i, q, r.Queues))
		}
	}
	for _, w := range r.workers {
		if err := r.openQueue(w, longest, ends); err != nil {
			return err
		}
	}
	return nil
}

// compile makes the program of a stream.
func (r *run) compile(s *Stream) (*frame.Program, endpoints, error) {
	t, e, err := r.complete(s, r.method.Layer)
	if err != nil {
		return nil, e, err
	}
	o := frame.Options{Sizes: s.Sizes, Seed: s.Seed, NoPadding: r.method.Layer != method.Frame}
	if !s.Bare {
		o.Reserve = measure.TagLen
	}
	o.Skip = r.method.Layer.HeaderLen(t.V6())
	o.LeaveChecksum = r.LeaveChecksum
	if r.method.Layer == method.Payload {
		// A sender takes an empty datagram for the end of a batch.
		least := max(frame.MinSize, o.Skip+1+frame.FCSLen)
		if s.Bare && o.Sizes.Max() == 0 {
			o.Sizes = frame.FixedSize(least)
		} else if s.Bare && o.Sizes.Min() < least {
			return nil, e, bad("frames of %d bytes have no payload, and the method %s sends nothing else; allowed: %d or more", o.Sizes.Min(), r.Method, least)
		}
	}
	p, err := frame.Compile(t, o)
	if err != nil {
		return nil, e, &configError{err.Error()}
	}
	return p, e, nil
}

// openQueue opens the senders of a worker: one for all lanes where the method
// writes frames, else one for each, with its own ends.
func (r *run) openQueue(w *worker, longest int, ends []endpoints) error {
	var shared method.Sender
	var books *Account
	most := r.tagged
	for i := range r.Streams {
		if r.Streams[i].Bare {
			most = r.Batch
		}
	}
	for i := range r.Streams {
		l := r.streams[i][w.queue]
		w.lanes = append(w.lanes, l)
		if l.batch = r.Batch; l.tagged {
			l.batch = r.tagged
		}
		if shared != nil {
			l.sender, l.account = shared, books
			continue
		}
		c := method.Config{
			Interface: r.Interface, Queue: w.queue, Size: longest, Batch: most, Qdisc: r.Qdisc, Plain: r.Plain, LeaveChecksum: r.LeaveChecksum, Copying: r.Copying,
			Source: ends[i].source, Destination: ends[i].destination, SourceMAC: ends[i].sourceMAC, NextHop: ends[i].nextHop,
		}
		if c.Source.IsValid() && r.method.Layer == method.Payload {
			// Each queue has a socket of its own, and so a port.
			c.Source = portPlus(c.Source, w.queue)
		}
		s, err := r.method.Open(c)
		if err != nil {
			return err
		}
		l.sender, l.account = s, NewAccount(s)
		w.senders = append(w.senders, s)
		if r.method.Layer == method.Frame {
			shared, books = s, l.account
		}
	}
	if r.LeaveChecksum {
		leaver, ok := shared.(method.ChecksumLeaver)
		if !ok {
			return bad("the method %s cannot leave checksums to the device; allowed: packet, ring", r.Method)
		}
		for _, l := range w.lanes {
			l.leaver = leaver
			l.start, l.offset, _ = l.filler.Checksum()
		}
	}
	for _, l := range w.lanes {
		l.repeats(len(w.lanes) == 1)
	}
	return nil
}

// drive runs the workers and observes them.
func (r *run) drive(ctx context.Context) error {
	var working sync.WaitGroup
	// failed: workers send, drive receives; it has a place for each, so they never
	// wait. over is closed when all workers have returned.
	failed, over := make(chan error, len(r.workers)), make(chan struct{})
	r.start = time.Now()
	for _, w := range r.workers {
		working.Go(func() {
			if err := w.loop(&r.stop); err != nil {
				failed <- err
			}
		})
	}
	go func() {
		working.Wait()
		close(over)
	}()
	tick := time.NewTicker(r.Interval)
	defer tick.Stop()
	done := ctx.Done()
	var errs []error
	for {
		select {
		case <-over:
			for len(failed) > 0 {
				errs = append(errs, <-failed)
			}
			r.observe(true)
			return errors.Join(errs...)
		case err := <-failed:
			errs = append(errs, err)
			r.stop.Store(true)
		case <-done:
			r.stop.Store(true)
			done = nil
		case <-tick.C:
			r.observe(false)
		}
	}
}

// observe tells how it is going.
func (r *run) observe(last bool) {
	now := Sample{Elapsed: time.Since(r.start), Streams: make([]Flow, len(r.Streams)), Last: last}
	now.Over = now.Elapsed - r.last.Elapsed
	var before Flow
	for i := range r.Streams {
		f := &now.Streams[i]
		f.Name = r.Streams[i].Name
		var old Flow
		if r.last.Streams != nil {
			old = r.last.Streams[i]
		}
		for _, l := range r.streams[i] {
			f.Frames += l.frames.Load()
			f.Bytes += l.wire.Load()
		}
		f.SetRates(f.Frames-old.Frames, f.Bytes-old.Bytes, now.Over)
		now.Total.Frames += f.Frames
		now.Total.Bytes += f.Bytes
		before.Frames += old.Frames
		before.Bytes += old.Bytes
	}
	now.Total.SetRates(now.Total.Frames-before.Frames, now.Total.Bytes-before.Bytes, now.Over)
	r.last = now
	if r.Observe != nil {
		r.Observe(now)
	}
}

// report sums up, when the workers have ended.
func (r *run) report(linkBefore int64) Report {
	out := Report{Method: r.Method, Interface: r.Interface, Queues: r.Queues, LinkFrames: UnknownLink}
	for _, w := range r.workers {
		out.Elapsed = max(out.Elapsed, time.Duration(w.ended-w.began))
		for _, s := range w.senders {
			out.Counters.Add(s.Counters())
		}
	}
	var longest time.Duration
	for i := range r.Streams {
		s := StreamReport{Flow: Flow{Name: r.Streams[i].Name}, Asked: r.Streams[i].Rate.String()}
		spread := pace.NewSpread()
		for _, l := range r.streams[i] {
			s.Frames += l.frames.Load()
			s.Bytes += l.wire.Load()
			s.Missed = max(s.Missed, l.missed)
			spread.Merge(l.spread)
		}
		lasted := r.lasted(i)
		longest = max(longest, lasted)
		s.SetRates(s.Frames, s.Bytes, lasted)
		s.Error = RateError(r.Streams[i].Rate, r.meanScale(), &s.Flow)
		s.Gaps = spread.Gaps()
		out.Streams = append(out.Streams, s)
		out.Total.Frames += s.Frames
		out.Total.Bytes += s.Bytes
	}
	out.Total.SetRates(out.Total.Frames, out.Total.Bytes, longest)
	if after := linkFrames(r.Interface); linkBefore >= 0 && after >= 0 {
		out.LinkFrames = after - linkBefore
	}
	return out
}

// lasted is the time that a stream had: that of the run, or less if it had sent its count before.
func (r *run) lasted(stream int) (d time.Duration) {
	for q, l := range r.streams[stream] {
		w := r.workers[q]
		ended := w.ended
		if l.ended != 0 {
			ended = l.ended
		}
		d = max(d, time.Duration(ended-w.began))
	}
	return d
}

// meanScale is that of the steps, by their time.
func (r *run) meanScale() float64 {
	var sum, all float64
	for _, s := range r.Steps {
		sum += s.Scale * s.Time.Seconds()
		all += s.Time.Seconds()
	}
	if all == 0 {
		return 1
	}
	return sum / all
}

// RateError is by how much a stream was too fast, as a part of the rate times the
// scale.
func RateError(asked pace.Rate, scale float64, f *Flow) float64 {
	if asked.IsMax() || f.Frames == 0 || scale == 0 {
		return 0
	}
	held := f.PPS
	switch asked.Unit {
	case pace.L2Bits:
		held = f.L2Bits
	case pace.L1Bits:
		held = f.L1Bits
	}
	return held/(scale*float64(asked.PerSecond)) - 1
}

// linkFrames is what the interface counts as sent.
func linkFrames(name string) int64 {
	link, err := netlink.LinkByName(name)
	if err != nil || link.Attrs().Statistics == nil {
		return UnknownLink
	}
	return int64(link.Attrs().Statistics.TxPackets)
}

// close closes the senders.
func (r *run) close() {
	for _, w := range r.workers {
		for _, s := range w.senders {
			s.Close()
		}
	}
}
