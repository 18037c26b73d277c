package gen

import (
	"math"
	"sync/atomic"
	"time"

	"loam/gen/frame"
	"loam/gen/measure"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/sink"
)

// lane sends one stream on one queue: a share of the stream's frames, rate and count. It belongs to the worker of the
// queue.
type lane struct {
	sender method.Sender // shared by all lanes of a worker if the method sends whole frames
	// account computes the bytes that the field sender should have counted. Lanes that share
	// a sender share its account.
	account *Account
	// repeater is the sender if all frames of this lane are identical, so that they are not written again for each
	// call. Otherwise it is nil.
	repeater method.Repeater
	same     []byte
	// leaver is the field sender, as a method.ChecksumLeaver, if the network device computes a checksum of the frames (see
	// frame.Program.Checksum). Otherwise it is nil.
	leaver        method.ChecksumLeaver
	start, offset int
	filler        *frame.Filler
	clock         *pace.Clock
	spread        *pace.Spread
	fill          func(slot []byte) int // the callback for sender.Send; stored, because creating it allocates

	spacing pace.Spacing
	seed    uint64        // seed of the random spacing
	paced   pace.Rate     // this queue's share of the stream's rate, multiplied by the scale of the run's rates (Control)
	mean    float64       // mean frame size in bytes
	max     bool          // the lane sends without a rate limit
	silent  bool          // the lane sends nothing at present
	missed  time.Duration // time that earlier steps could not make up for

	ends  uint64 // number of frames to send in all; MaxUint64: unlimited
	done  uint64
	batch int // maximum number of frames in one call of the sender

	tagged bool
	flow   int      // number of the flow to which the next frame belongs
	run    uint16   // run ID, the same for all lanes: see measure.Tag
	next   []uint32 // next sequence number of each flow
	ids    []uint16
	sent   int64 // time stamp for the tags of the current batch
	bytes  int   // bytes of the frames written for the current call of Send, FCS included

	frames, wire atomic.Uint64 // numbers of frames sent, and of their bytes including FCS
	ended        int64         // when the last frame of a limited count was sent or due, whichever is later; 0: not finished
}

// catchUp is the longest stall that is made up for in full: the late frames are sent in quick succession. It keeps the
// rate over a second accurate on machines on which a thread may lose the processor for some hundredths of a second.
const catchUp = 200 * time.Millisecond

// taggedBatch is the default maximum number of frames in a batch of tagged frames. All frames of a batch have the same
// time stamp, so the last frame should be sent soon after the first.
const taggedBatch = 256

// newLane returns the lane for the share of stream s that belongs to a queue.
func newLane(s *Stream, p *frame.Program, run uint16, index, queue, queues int) *lane {
	l := &lane{
		run:     run,
		spacing: s.Spacing, seed: s.Seed + uint64(queue),
		filler: p.Filler(queue, queues),
		mean:   p.Sizes().Mean(),
		spread: pace.NewSpread(),
		ends:   math.MaxUint64,
		tagged: !s.Bare,
	}
	if s.Count != 0 {
		l.ends = s.Count*uint64(queue+1)/uint64(queues) - s.Count*uint64(queue)/uint64(queues)
	}
	own := flowsOf(s.Flows, queues)
	l.next, l.ids = make([]uint32, min(own, sink.MaxFlows)), make([]uint16, own)
	for f := range l.ids {
		l.ids[f] = uint16(sink.NewID(index, queue, f))
	}
	l.fill = l.write
	return l
}

// pace sets the rate. r is this queue's share of the stream's rate, before it is multiplied by scale.
func (l *lane) pace(r pace.Rate, scale float64) {
	if l.max = r.IsMax(); !l.max {
		r.PerSecond = max(1, uint64(scale*float64(r.PerSecond)+0.5))
	}
	l.silent, l.paced = scale == 0, r
}

// enter starts a step. began is the planned start, which may be some time ago.
func (l *lane) enter(r pace.Rate, scale float64, began int64) {
	l.pace(r, scale)
	l.clock = pace.NewClock(l.paced, l.mean, catchUp)
	l.clock.Space(l.spacing, l.seed)
	l.clock.Permits(began)
}

// change changes the rate within a step. The time slot of the next frame, which has begun at the old rate, continues at
// the new rate, so that a change adds no frame. After a pause, and after a time without a rate limit, a new slot
// begins.
func (l *lane) change(r pace.Rate, scale float64, now int64) {
	fresh := l.silent || l.max
	if l.pace(r, scale); fresh || l.silent || l.max {
		l.missed += l.clock.Missed()
		l.enter(r, scale, now)
		return
	}
	l.clock.Change(l.paced, now)
}

// leave ends a step whose planned end was the time until. Frames that were due before
// that time but could not be sent in time count as missed time.
func (l *lane) leave(until int64) {
	l.missed += l.clock.Missed()
	if l.silent || l.max || l.done == l.ends || pace.Now() < until {
		return
	}
	left := l.clock.Due(until - 1)
	l.missed += time.Duration(float64(left) / l.paced.FramesPerSecond(l.mean) * float64(time.Second))
}

// flowsOf returns the number of flows that one queue sends. Of n queues, a queue sends every n-th flow, and continues
// in a cycle at the end. So it sends flows/gcd(flows, queues) different flows.
func flowsOf(flows, queues int) int {
	a, b := flows, queues
	for b != 0 {
		a, b = b, a%b
	}
	return flows / a
}

// write is the callback for Send: it writes the next frame and its tag into slot.
func (l *lane) write(slot []byte) int {
	n := l.filler.Next(slot)
	l.bytes += l.filler.WireLen(n)
	if l.tagged {
		numbers := &l.next[l.flow%sink.MaxFlows]
		measure.Tag{Run: l.run, Stream: l.ids[l.flow], Sequence: *numbers, Sent: l.sent}.Put(l.filler.Body(slot))
		l.filler.Seal(slot)
		*numbers++
		if l.flow++; l.flow == len(l.ids) {
			l.flow = 0
		}
	}
	return n
}

// due returns the number of frames that may be sent now. After the time until, the end of
// the step, it returns the number of frames that were due before that time, if they may
// still be sent late.
func (l *lane) due(now, until int64) int {
	if l.silent {
		return 0
	}
	if now >= until {
		if l.max || now > until+int64(catchUp) {
			return 0
		}
		return min(l.clock.Due(until-1), l.room())
	}
	return min(l.clock.Permits(now), l.room())
}

// room returns the maximum number of frames for one call of the sender.
func (l *lane) room() int { return int(min(uint64(l.batch), l.ends-l.done)) }

// repeats enables the fast path for identical frames, if the sender is a Repeater and no other lane uses it.
func (l *lane) repeats(alone bool) {
	if same := l.filler.Same(); alone && same != nil && !l.tagged {
		l.repeater, _ = l.sender.(method.Repeater)
		l.same = same
	}
}

// hand passes n frames to the sender, by Repeat if the fast path is enabled and otherwise by Send.
func (l *lane) hand(n int) (sent int, err error) {
	l.bytes = 0
	if l.leaver != nil {
		l.leaver.LeaveChecksum(l.start, l.offset)
	}
	if l.repeater == nil {
		return l.sender.Send(n, l.fill)
	}
	sent, err = l.repeater.Repeat(l.same, n)
	l.bytes = n * l.filler.WireLen(len(l.same))
	return sent, err
}

// send passes n frames to the sender and updates the clock and the counters. Frames that are refused use up their time
// slots, too.
func (l *lane) send(n int) error {
	if l.tagged {
		l.sent = time.Now().UnixNano()
	}
	sent, err := l.hand(n)
	l.clock.Sent(n, l.bytes)
	l.bytes = l.account.Took(l.sender, n, sent, l.bytes, l.filler.WireLen(0))
	if sent > 0 {
		l.spread.Sent(pace.Now(), sent)
		l.frames.Add(uint64(sent))
		l.wire.Add(uint64(l.bytes))
	}
	if l.done += uint64(n); l.done == l.ends {
		l.ended = max(pace.Now(), l.clock.Next())
	}
	return err
}

// Account computes the number of bytes that a sender should have counted. The difference to the sender's own byte
// counter is the number of bytes in refused frames. An Account avoids reading that counter often, which can be
// expensive. Only one goroutine may use it at a time.
type Account struct{ bytes uint64 }

// NewAccount returns an Account that starts at the current byte counter of s.
func NewAccount(s method.Sender) *Account { return &Account{s.Counters().Bytes} }

// Took records that the sender s accepted some of a batch of n frames: as many as the parameter sent, beginning
// with the first. It returns the bytes of the accepted frames on the wire. bytes is the total of all n frames.
// beside is the number of bytes of each frame that the sender's own counter does not include.
func (a *Account) Took(s method.Sender, n, sent, bytes, beside int) int {
	if sent < n {
		bytes = int(s.Counters().Bytes-a.bytes) + sent*beside
	}
	a.bytes += uint64(bytes - sent*beside)
	return bytes
}
