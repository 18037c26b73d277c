//go:build linux

package gen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/gen/method"
	"loam/gen/pace"
)

// run is the state of a run in progress. It is owned by the goroutine of Run, except the lanes, which belong to their
// workers until these have ended. Until then, Run reads only the atomic fields of lanes.
type run struct {
	Config
	id      uint16 // ID of the run, for the tags: see measure.Tag
	method  method.Method
	tagged  int // maximum batch size of streams with tags
	workers []*worker
	streams [][]*lane // the lanes of each stream, by queue

	start time.Time
	last  Sample
	stop  atomic.Bool
}

// Run sends the streams of c. It returns when all streams have sent their counts, when the time is over, or when ctx is
// done. The end of ctx is not an error. Even if Run returns an error, the report covers the frames that were sent.
func Run(ctx context.Context, c Config) (Report, error) {
	r := &run{Config: c.withDefaults(), id: uint16(rand.Uint32())}
	var err error
	for i := range r.Streams {
		if r.Streams[i].Rate, err = OnLine(r.Streams[i].Rate, r.Interface); err != nil {
			return Report{}, err
		}
	}
	if err := r.check(); err != nil {
		return Report{}, err
	}
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
	if r.Method != "tap" { // for a TAP interface, the kernel counts the sent frames as received
		before = linkFrames(r.Interface)
	}
	err = r.drive(ctx)
	return r.report(before, r.Control.End()), err
}

// open compiles the streams and opens the senders.
func (r *run) open() error {
	// The stack of the method loam has threads of its own, which should run close to the worker.
	pin := !r.Float && r.Method != "loam"
	for q := range r.Queues {
		r.workers = append(r.workers, &worker{queue: q, queues: r.Queues, pin: pin, steps: r.Steps, control: r.Control})
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
			r.streams[i] = append(r.streams[i], newLane(s, p, r.id, i, q, r.Queues))
		}
	}
	for _, w := range r.workers {
		if err := r.openQueue(w, longest, ends); err != nil {
			return err
		}
	}
	return nil
}

// compile fills in the open fields of a stream's template, and compiles the template.
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
		// A receiver could mistake an empty datagram for the end of a batch, so each datagram has at least one byte.
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

// openQueue opens the senders of a worker. If the method sends whole frames, all lanes of the worker share one sender.
// Otherwise each lane has a sender of its own, with its own endpoints.
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
			// Each queue has its own socket and therefore its own source port.
			c.Source = portPlus(c.Source, w.queue)
		}
		s, err := r.method.Open(c)
		if err != nil {
			return err
		}
		l.sender, l.account = s, NewAccount(s)
		r.bear(s, r.Patience)
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

// drive starts the workers, and reports their progress until all have ended.
func (r *run) drive(ctx context.Context) error {
	var working sync.WaitGroup
	// failed carries errors from the workers to drive. It has room for one error per worker, so workers never block.
	// over is closed when all workers have returned.
	failed, over := make(chan error, len(r.workers)), make(chan struct{})
	r.start = time.Now()
	r.Control.Begin(r.Interface, r.Streams, r.checkRates)
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
			r.limitPatience()
			done = nil
		case <-tick.C:
			r.observe(false)
		}
	}
}

// bear sets the patience of a sender (method.Patient), if the sender supports this and the run has set a patience.
func (r *run) bear(s method.Sender, d time.Duration) {
	if p, ok := s.(method.Patient); ok && r.Patience > 0 {
		p.SetPatience(d)
	}
}

// limitPatience shortens the patience of all senders, so that senders that are waiting end soon.
func (r *run) limitPatience() {
	for _, w := range r.workers {
		for _, s := range w.senders {
			r.bear(s, min(r.Patience, method.DefaultPatience))
		}
	}
}

// observe computes the current Sample and passes it to Config.Observe.
func (r *run) observe(last bool) {
	now := Sample{Elapsed: time.Since(r.start), Streams: make([]Flow, len(r.Streams)), Last: last}
	now.Over = now.Elapsed - r.last.Elapsed
	var before Flow
	rates := r.Control.Rates().Of
	for i := range r.Streams {
		f := &now.Streams[i]
		f.Name, f.Asked = r.Streams[i].Name, rates[i].String()
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

// report returns the Report, after the workers have ended. linkBefore is the interface's counter of sent frames at the
// start. changed reports whether rates were changed during the run.
func (r *run) report(linkBefore int64, changed bool) Report {
	out := Report{Run: r.id, Method: r.Method, Interface: r.Interface, Queues: r.Queues, LinkFrames: UnknownLink}
	for _, w := range r.workers {
		out.Elapsed = max(out.Elapsed, time.Duration(w.ended-w.began))
		for _, s := range w.senders {
			out.Counters.Add(s.Counters())
		}
	}
	var longest time.Duration
	out.Changed = changed
	rates := r.Control.Rates().Of
	for i := range r.Streams {
		s := StreamReport{Flow: Flow{Name: r.Streams[i].Name, Asked: rates[i].String()}}
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
		if !changed {
			s.Error = RateError(r.Streams[i].Rate, r.meanScale(), &s.Flow)
		}
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

// lasted returns the time during which a stream was sent: the whole run, or less if the stream has sent its count
// earlier.
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

// meanScale returns the average scale of the steps, weighted by their times.
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

// RateError returns the relative error of a stream's actual rate compared with the
// configured rate (asked) multiplied by scale. A positive error means that the stream was
// too fast. It is 0 if the stream has no rate.
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

// linkFrames returns the number of frames that the interface has counted as sent, or UnknownLink.
func linkFrames(name string) int64 {
	link, err := netlink.LinkByName(name)
	if err != nil || link.Attrs().Statistics == nil {
		return UnknownLink
	}
	return int64(link.Attrs().Statistics.TxPackets)
}

func (r *run) close() {
	for _, w := range r.workers {
		for _, s := range w.senders {
			s.Close()
		}
	}
}
