package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
)

// Config is the configuration of a replay.
type Config struct {
	// Open opens the file from its start. It is called once per loop.
	Open   func() (*Source, error)
	Sender method.Sender // sends whole Ethernet frames (layer Frame); the caller closes it
	Batch  int           // maximum number of frames in one call of Sender; 0: method.DefaultBatch
	// Rate is the sending rate. It is ignored if Speed is above 0.
	Rate pace.Rate
	// Speed makes the replay keep the gaps of the capture, divided by Speed: 1 means the original timing. 0 means that
	// Rate is used.
	Speed    float64
	Loops    int           // number of times that the file is sent; 0: until Time or ctx ends the replay
	Time     time.Duration // duration of sending; 0: until all loops are sent
	Rewrite  Rewrite       // changes to each frame
	MeanSize float64       // mean frame size in bytes, FCS included; for rates in bits
	// Control changes the rate or, with Speed, the factor of the speed. Interface is the interface whose speed is used
	// for rates that are a share of it. Limit returns an error for rates, in frames per second, that are not allowed.
	// Control and Limit may be nil.
	Control   *gen.Control
	Interface string
	Limit     func(pps float64) error
	// Observe is called every Interval (0: one second) in the goroutine of Run.
	Interval time.Duration
	Observe  func(gen.Sample)
}

// chunk holds some frames of the file on their way from the reader to the sender. Chunks are reused.
type chunk struct {
	n      int
	frames [method.DefaultBatch][]byte
	at     [method.DefaultBatch]time.Duration // time since the first frame of the first loop
}

// chunks is the number of chunks. It limits how far the reader is ahead of the sender.
const chunks = 64

// reading is the state of reading the file. One goroutine reads the file, and the goroutine of Run sends.
type reading struct {
	// full: the reader sends, and closes it at the end; Run receives. If it is full, the reader waits. free: Run sends
	// and the reader receives; it is never closed. It has room for all chunks.
	full, free chan *chunk
	err        error // why the reader ended early; read only after full is closed
}

// streamName is the name of the only stream in the report.
const streamName = "capture"

// Run sends the file. It returns at the end of the last loop, when Time is over, or when ctx is done. The end of ctx is
// not an error.
func Run(ctx context.Context, c Config) (gen.Report, error) {
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Batch == 0 {
		c.Batch = method.DefaultBatch
	}
	if c.Control == nil {
		c.Control = gen.NewControl()
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{full: make(chan *chunk, chunks), free: make(chan *chunk, chunks)}
	for range chunks {
		r.free <- new(chunk)
	}
	go r.read(ctx, c)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer pace.Punctual()()
	p := newPlayer(c)
	err := p.play(ctx, r)
	p.changed = c.Control.End()
	cancel()
	for range r.full { // wait until the reader has ended
	}
	if err == nil {
		err = r.err
	}
	if e := c.Sender.Flush(5 * time.Second); err == nil {
		err = e
	}
	return p.report(), err
}

// read reads the file once for each loop.
func (r *reading) read(ctx context.Context, c Config) {
	defer close(r.full)
	var offset time.Duration
	for loop := uint64(0); c.Loops == 0 || loop < uint64(c.Loops); loop++ {
		s, err := c.Open()
		if err == nil {
			offset, err = r.once(ctx, s, offset, &c.Rewrite, loop)
		}
		if err != nil {
			r.err = err
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// once reads the file once and rewrites its frames. It returns the start time of the next loop. The capture does not
// contain a gap before its first frame; between two loops, the last gap of the file is used.
func (r *reading) once(ctx context.Context, s *Source, offset time.Duration, change *Rewrite, loop uint64) (next time.Duration, err error) {
	var last, gap time.Duration
	for err == nil {
		var k *chunk
		select {
		case k = <-r.free:
		case <-ctx.Done():
			return 0, nil
		}
		for k.n = 0; k.n < len(k.frames); k.n++ {
			var at time.Duration
			if k.frames[k.n], at, err = s.Next(); err != nil {
				break
			}
			change.Apply(k.frames[k.n], loop)
			gap, last = at-last, at
			k.at[k.n] = offset + at
		}
		r.full <- k
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return offset + last + gap, err
}

// player sends the frames and counts them.
type player struct {
	Config
	clock           *pace.Clock
	spread          *pace.Spread
	waiter          *pace.Waiter
	began, observed int64
	until, ended    int64         // until is the time at which sending ends; MaxInt64: no limit
	rates           *gen.Rates    // the current rates
	changed         bool          // the rates were changed during the replay
	speed           float64       // current factor of the capture's timing; 0: sending at a rate, or paused
	from            int64         // time since which speed has been in effect
	reached         time.Duration // time in the capture that was reached at the time from
	missed          time.Duration // missed time of earlier clocks, before the rate was changed
	rest            time.Duration // rest of the time slot of the last frame when sending ended
	account         *gen.Account
	total, before   gen.Flow
}

func newPlayer(c Config) *player {
	p := &player{Config: c, spread: pace.NewSpread(), began: pace.Now(), waiter: pace.NewWaiter(), account: gen.NewAccount(c.Sender), until: math.MaxInt64}
	p.observed, p.from, p.speed = p.began, p.began, c.Speed
	if c.Time > 0 {
		p.until = p.began + int64(c.Time)
	}
	p.clock = pace.NewClock(c.Rate, c.MeanSize, 0)
	rate := c.Rate
	if c.Speed > 0 {
		rate = pace.Rate{}
	}
	c.Control.Begin(c.Interface, []gen.Stream{{Name: streamName, Rate: rate}}, p.check)
	p.rates = c.Control.Rates()
	return p
}

// check returns an error for rates above the limit, and for a factor if the rate is unlimited.
func (p *player) check(r *gen.Rates) error {
	if captured := p.Speed > 0 && r.Of[0].IsMax(); !captured && r.Of[0].IsMax() && r.Factor != 0 && r.Factor != 1 {
		return fmt.Errorf("%w: there is no rate that could be scaled", gen.ErrConfig)
	} else if captured || p.Limit == nil {
		return nil
	}
	return p.Limit(r.Factor * r.Of[0].FramesPerSecond(p.MeanSize))
}

// follow applies rates that the Control has changed.
func (p *player) follow(now int64) {
	r := p.Control.Rates()
	if r == p.rates {
		return
	}
	if p.speed > 0 {
		p.reached += time.Duration(float64(now-p.from) * p.speed)
	}
	p.rates, p.from, p.speed = r, now, 0
	if p.captured() {
		p.speed = p.Speed * r.Factor
		return
	}
	rate := r.Of[0]
	if !rate.IsMax() {
		rate.PerSecond = max(1, uint64(r.Factor*float64(rate.PerSecond)+0.5))
	}
	missed := p.clock.Missed()
	p.clock = pace.NewClock(rate, p.MeanSize, 0)
	p.missed += missed
}

// captured reports whether frames are sent with the timing of the capture.
func (p *player) captured() bool { return p.Speed > 0 && p.rates.Of[0].IsMax() }

// play sends the chunks until the file ends, Time is over, or ctx is done.
func (p *player) play(ctx context.Context, r *reading) error {
	defer func() { p.ended = pace.Now() }()
	for k := range r.full {
		if ctx.Err() != nil || pace.Now() >= p.until {
			return nil
		}
		if err := p.send(ctx, k); err != nil {
			return err
		}
		r.free <- k
	}
	if !p.captured() && ctx.Err() == nil {
		p.rest = time.Duration(max(0, p.clock.Next()-pace.Now()))
	}
	return nil
}

// send sends the frames of a chunk, each when it is due.
func (p *player) send(ctx context.Context, k *chunk) error {
	next, bytes := 0, 0
	fill := func(slot []byte) int {
		n := copy(slot, k.frames[next])
		bytes += n + frame.FCSLen
		next++
		return n
	}
	for next < k.n && ctx.Err() == nil {
		now := pace.Now()
		if now >= p.until {
			return nil
		}
		p.follow(now)
		n, then := p.due(k, next, now)
		if n == 0 {
			p.observe(now)
			p.waiter.Approach(min(then, p.observed+int64(p.Interval), p.until))
			continue
		}
		bytes = 0
		n = min(n, p.Batch)
		sent, err := p.Sender.Send(n, fill)
		p.clock.Sent(n, bytes)
		p.spread.Sent(pace.Now(), sent)
		bytes = p.account.Took(p.Sender, n, sent, bytes, frame.FCSLen)
		p.total.Frames += uint64(sent)
		p.total.Bytes += uint64(bytes)
		if err != nil {
			return err
		}
		p.observe(now)
	}
	return nil
}

// due returns n, the number of frames, beginning with number next, that may be sent now. If
// n is 0, the second result is the time at which the next frame is due.
func (p *player) due(k *chunk, next int, now int64) (n int, then int64) {
	if p.rates.Factor == 0 {
		return 0, math.MaxInt64
	}
	if !p.captured() {
		return min(p.clock.Permits(now), k.n-next), p.clock.Next()
	}
	for n = 0; next+n < k.n; n++ {
		then = p.from + int64(float64(k.at[next+n]-p.reached)/p.speed)
		if then > now {
			break
		}
	}
	return n, then
}

// observe calls Config.Observe if an interval has passed since the last call.
func (p *player) observe(now int64) {
	if p.Observe == nil || now < p.observed+int64(p.Interval) {
		return
	}
	s := gen.Sample{Elapsed: time.Duration(now - p.began), Over: time.Duration(now - p.observed)}
	s.Total = p.total
	s.Total.SetRates(p.total.Frames-p.before.Frames, p.total.Bytes-p.before.Bytes, s.Over)
	s.Total.Name, s.Total.Asked = streamName, p.asked()
	s.Streams = []gen.Flow{s.Total}
	p.before, p.observed = p.total, now
	p.Observe(s)
}

// asked returns a description of the current rate.
func (p *player) asked() string {
	if p.captured() {
		return "as captured"
	}
	return p.rates.Of[0].String()
}

// report returns the Report. The capture is its only stream.
func (p *player) report() gen.Report {
	r := gen.Report{Queues: 1, Elapsed: time.Duration(p.ended - p.began), Counters: p.Sender.Counters(), LinkFrames: gen.UnknownLink}
	r.Total = p.total
	r.Total.SetRates(p.total.Frames, p.total.Bytes, r.Elapsed+p.rest)
	s := gen.StreamReport{Flow: r.Total, Gaps: p.spread.Gaps(), Missed: p.missed + p.clock.Missed()}
	s.Name, s.Asked = streamName, p.asked()
	r.Changed = p.changed
	if p.captured() {
		s.Missed = 0
	} else if !p.changed {
		s.Error = gen.RateError(p.Rate, 1, &s.Flow)
	}
	if math.IsNaN(s.Error) {
		s.Error = 0
	}
	r.Streams = []gen.StreamReport{s}
	return r
}
