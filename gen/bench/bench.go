//go:build linux

// Package bench measures ways to send packets beside one another: every method of
// the packet engine, and whatever else can be started and stopped, on one
// interface, in one run, counted at the peer.
//
// All of them are measured in the same way (measure): started, left alone until
// frames arrive and a while longer, then the peer's counter is read twice. So how
// long a program takes to start and to end does not count, and what it says about
// itself neither. They take turns, several times, since a shared machine is not
// the same from one minute to the next: the median counts, and the spread is told.
// For the same reason frames are also counted by the second of processor time that
// they cost, which other programs on the machine change less: ratios are of that.
//
// Read this file, then contestant.go (the methods), peer.go (whose counter is
// read), processor.go, table.go and plot.go.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Contestant is something that sends.
type Contestant struct {
	Name   string
	Queues int
	// Start begins to send as fast as it can.
	Start func(ctx context.Context) (*Running, error)
	// Counter is read for what arrived; nil is that of the peer.
	Counter func() (Count, error)
}

// Running is a contestant that sends.
type Running struct {
	// Stop ends it, and returns what is known of what was sent when nothing is sent
	// any more.
	Stop func() (Sent, error)
	// Group is the process group whose processor time counts; 0 is this process, of
	// which the threads that Threads is the beginning of the names of count.
	Group   int
	Threads string
}

// Sent is what a contestant says about itself.
type Sent struct {
	Frames uint64 // 0: it does not say
	// Train is true of a way to send whose datagrams may arrive uncut.
	Train bool
}

// Count is what an interface has received.
type Count struct{ Frames, Bytes uint64 }

// Options say how to measure.
type Options struct {
	Slice  time.Duration // of one measurement
	Warm   time.Duration // from the first frame to its beginning
	Rounds int
	// Peer reads the counter of the receiving interface.
	Peer func() (Count, error)
	// Progress is told what is measured; it may be nil.
	Progress func(text string)
}

// Row is what one contestant reached.
type Row struct {
	Name   string    `json:"name"`
	Queues int       `json:"queues"`
	PPS    []float64 `json:"pps"` // frames a second in each round, as the peer counted
	// PerCPU are frames a second of processor time.
	PerCPU []float64 `json:"per_cpu"`
	// Lost is the part of what the contestant says that it has sent which the peer
	// has not counted; below 0: it does not say.
	Lost  float64 `json:"lost"`
	Error string  `json:"error,omitempty"` // why it was not measured
	Note  string  `json:"note,omitempty"`
}

// Median is the rate that counts, 0 if there is none.
func (r *Row) Median() float64 { return median(r.PPS) }

// MedianPerCPU is the same by processor time.
func (r *Row) MedianPerCPU() float64 { return median(r.PerCPU) }

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Spread is the least and the most of the rounds.
func (r *Row) Spread() (least, most float64) {
	if len(r.PPS) == 0 {
		return 0, 0
	}
	return slices.Min(r.PPS), slices.Max(r.PPS)
}

// Run has the contestants take turns, in every second round from the last to the first:
// so neither of two neighbours is always measured before the other. An error of one is
// in its row; the error returned is that of ctx.
func Run(ctx context.Context, all []Contestant, o Options) ([]Row, error) {
	rows := make([]Row, len(all))
	for i, c := range all {
		rows[i] = Row{Name: c.Name, Queues: c.Queues, Lost: -1}
	}
	for round := range o.Rounds {
		for turn := range all {
			i := turn
			if round%2 == 1 {
				i = len(all) - 1 - turn
			}
			r := &rows[i]
			if r.Error != "" {
				continue
			}
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("round %d of %d: %s, %d queue(s)", round+1, o.Rounds, r.Name, r.Queues))
			}
			if err := measure(ctx, &all[i], o, r); err != nil {
				r.Error = err.Error()
			}
			if ctx.Err() != nil {
				return rows, ctx.Err()
			}
		}
	}
	return rows, nil
}

// Waits of measure.
const (
	firstFrame = 30 * time.Second       // for a contestant to send at all
	settle     = 100 * time.Millisecond // for the last frames to be counted
)

// errSilent is what is wrong with a contestant whose frames do not arrive.
var errSilent = errors.New("no frame arrived")

// measure takes one slice of a contestant.
func measure(ctx context.Context, c *Contestant, o Options, r *Row) error {
	if c.Counter != nil {
		return measureAt(ctx, c, c.Counter, Count{}, o, r)
	}
	before, err := o.Peer()
	if err != nil {
		return err
	}
	return measureAt(ctx, c, o.Peer, before, o, r)
}

// measureAt takes one slice by a counter that stands at before.
func measureAt(ctx context.Context, c *Contestant, counter func() (Count, error), before Count, o Options, r *Row) error {
	running, err := c.Start(ctx)
	if err != nil {
		return err
	}
	pps, perCPU, err := slice(ctx, running, counter, before, o)
	sent, e := running.Stop()
	if err = errors.Join(err, e); err != nil {
		return err
	}
	r.PPS, r.PerCPU = append(r.PPS, pps), append(r.PerCPU, perCPU)
	if sent.Frames == 0 || c.Counter != nil {
		return nil
	}
	wait(ctx, settle)
	after, err := counter()
	if err == nil {
		r.judge(sent, after.Frames-before.Frames)
	}
	return err
}

// slice waits for frames and then measures how many there are.
func slice(ctx context.Context, running *Running, counter func() (Count, error), before Count, o Options) (pps, perCPU float64, err error) {
	for deadline := time.Now().Add(firstFrame); ; wait(ctx, time.Millisecond) {
		now, err := counter()
		if err != nil {
			return 0, 0, err
		}
		if now.Frames > before.Frames {
			break
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return 0, 0, errSilent
		}
	}
	wait(ctx, o.Warm)
	first, err := take(running, counter)
	if err != nil {
		return 0, 0, err
	}
	wait(ctx, o.Slice)
	last, err := take(running, counter)
	if err != nil {
		return 0, 0, err
	}
	frames := float64(last.frames - first.frames)
	if used := last.used - first.used; used > 0 {
		perCPU = frames / used.Seconds()
	}
	return frames / last.at.Sub(first.at).Seconds(), perCPU, nil
}

// reading is what the counters say at one time.
type reading struct {
	frames uint64
	at     time.Time
	used   time.Duration
}

func take(running *Running, counter func() (Count, error)) (reading, error) {
	used, err := processorTime(running.Group, running.Threads)
	if err != nil {
		return reading{}, err
	}
	n, err := counter()
	return reading{n.Frames, time.Now(), used + SoftirqTime()}, err
}

// judge compares what was sent with what arrived.
func (r *Row) judge(sent Sent, arrived uint64) {
	r.Lost = max(0, 1-float64(arrived)/float64(sent.Frames))
	const trains = 0.5
	if sent.Train && r.Lost > trains {
		r.Note = "the peer counts trains of datagrams that nobody has cut up: ethtool -K IF tx-udp-segmentation off shows what they cost"
	}
}

// wait sleeps, unless ctx is done.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
