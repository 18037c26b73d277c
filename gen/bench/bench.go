//go:build linux

// Package bench compares ways to send packets: the methods of the packet engine, and any other program that can be
// started and stopped. All of them send on the same interface, one after the other, and the peer (the other end of the
// link) counts the received packets.
//
// All contestants are measured in the same way (measure). A contestant is started, and runs until its first frame has
// arrived and some time longer; then the peer's counter is read twice. So the time to start and to stop has no effect
// on the result, and neither has the contestant's own report. The contestants take turns over several rounds, because
// the load of a shared machine changes from minute to minute. The result is the median of the rounds, with the spread.
// Frames per second of processor time are measured too, since other programs on the machine affect this number less.
// Ratios between contestants are based on it.
//
// Reading order: this file, contestant.go (the methods), peer.go (the counter), processor.go, table.go and plot.go.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Contestant is a way to send packets that is to be measured.
type Contestant struct {
	Name   string
	Queues int
	// Start starts sending as fast as possible.
	Start func(ctx context.Context) (*Running, error)
	// Counter reads the number of received frames. If it is nil, Options.Peer is used.
	Counter func() (Count, error)
}

// Running is a contestant that is sending.
type Running struct {
	// Stop ends the contestant and waits until it has stopped. It returns the contestant's own report of the frames
	// that it has sent.
	Stop func() (Sent, error)
	// Group is the process group whose processor time is counted; 0 means this process. All its threads are counted,
	// including the threads of a language's runtime.
	Group int
}

// Sent is the contestant's own report of the frames that it has sent.
type Sent struct {
	Frames uint64 // number of frames; 0: unknown
	// Train reports that several datagrams may arrive as one unsegmented packet, which the peer counts once.
	Train bool
}

// Count is the number of frames and bytes that an interface has received.
type Count struct{ Frames, Bytes uint64 }

// Options are the parameters of a measurement.
type Options struct {
	Slice  time.Duration // duration of the measurement of one contestant in one round
	Warm   time.Duration // time from the first frame to the start of the measurement
	Rounds int
	// Peer reads the counter of the receiving interface.
	Peer func() (Count, error)
	// Progress is called with a description of the current measurement. It may be nil.
	Progress func(text string)
}

// Row is the result of one contestant.
type Row struct {
	Name   string    `json:"name"`
	Queues int       `json:"queues"`
	PPS    []float64 `json:"pps"` // frames per second in each round, counted by the peer
	// PerCPU is the number of frames per second of processor time, in each round.
	PerCPU []float64 `json:"per_cpu"`
	// Lost is the fraction of the sent frames that the peer did not count. It is negative if the contestant does not
	// report how many frames it sent.
	Lost  float64 `json:"lost"`
	Error string  `json:"error,omitempty"` // why the contestant was not measured; "": it was measured
	Note  string  `json:"note,omitempty"`
}

// Median returns the median rate in frames per second, or 0 if there is none.
func (r *Row) Median() float64 { return median(r.PPS) }

// MedianPerCPU returns the median of PerCPU, or 0 if there is none.
func (r *Row) MedianPerCPU() float64 { return median(r.PerCPU) }

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Spread returns the lowest and the highest rate of the rounds.
func (r *Row) Spread() (least, most float64) {
	if len(r.PPS) == 0 {
		return 0, 0
	}
	return slices.Min(r.PPS), slices.Max(r.PPS)
}

// Run measures the contestants in turn. Every second round is in reverse order, so that no contestant is always
// measured before the same other one. The error of a contestant is stored in its row; Run returns only the error of
// ctx.
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

// Times that measure waits.
const (
	firstFrame = 30 * time.Second       // maximum wait for the first frame
	settle     = 100 * time.Millisecond // wait after a contestant has stopped, until its last frames are counted
)

// errSilent reports that no frame of a contestant arrived.
var errSilent = errors.New("no frame arrived")

// measure measures a contestant once.
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

// measureAt measures a contestant once with the given counter. before is the value of the counter at the start.
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

// slice waits for the first frame and then measures the rate.
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

// reading is the values of the counters at one time.
type reading struct {
	frames uint64
	at     time.Time
	used   time.Duration
}

func take(running *Running, counter func() (Count, error)) (reading, error) {
	used, err := processorTime(running.Group)
	if err != nil {
		return reading{}, err
	}
	n, err := counter()
	return reading{n.Frames, time.Now(), used + SoftirqTime()}, err
}

// judge stores the fraction of the sent frames that did not arrive. If most are missing, and sent.Train
// is set, it adds a note: the peer has probably counted unsegmented packets.
func (r *Row) judge(sent Sent, arrived uint64) {
	r.Lost = max(0, 1-float64(arrived)/float64(sent.Frames))
	const trains = 0.5
	if sent.Train && r.Lost > trains {
		r.Note = "the peer counts trains of datagrams that nobody has cut up: ethtool -K IF tx-udp-segmentation off shows what they cost"
	}
}

// wait sleeps for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
