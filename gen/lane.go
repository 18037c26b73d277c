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

// lane is one stream on one queue: a share of the stream's frames, rate and count. It belongs to its worker.
type lane struct {
	sender method.Sender // shared by all lanes of a worker if the method sends whole frames
	// account belongs to sender and is shared like it.
	account *Account
	// repeater is the sender if all frames of this lane are identical, so that they need not be written again each
	// time. Otherwise it is nil.
	repeater method.Repeater
	same     []byte
	// leaver is the sender if a checksum is left to the device (see frame.Program.Checksum). Otherwise it is nil.
	leaver        method.ChecksumLeaver
	start, offset int
	filler        *frame.Filler
	clock         *pace.Clock
	spread        *pace.Spread
	fill          func(slot []byte) int // the callback for Send, created once because creating it allocates

	spacing pace.Spacing
	seed    uint64        // seed of the spacing
	paced   pace.Rate     // this queue's share of the rate, scaled
	mean    float64       // mean frame size
	max     bool          // no rate limit
	silent  bool          // nothing is sent now
	missed  time.Duration // time by which sending fell behind its schedule in earlier steps

	ends  uint64 // frames to send; MaxUint64: unlimited
	done  uint64
	batch int // maximum number of frames in one call of the sender

	tagged bool
	flow   int      // flow of the next frame
	run    uint16   // run ID, the same for all lanes: see measure.Tag
	next   []uint32 // next sequence number of each flow
	ids    []uint16
	sent   int64 // time of the current batch, for the tags
	bytes  int   // bytes written since the last Send, FCS included

	frames, wire atomic.Uint64 // frames sent, and their bytes including FCS
	ended        int64         // when the last frame of a limited count was sent or was due, whichever is later; 0: not yet
}

// catchUp is the longest stall that is made up for in full, by sending the late frames in quick succession. It
// keeps the rate accurate over a second on machines that lose the processor for some hundredths of a second.
const catchUp = 200 * time.Millisecond

// taggedBatch is the default limit of a batch of tagged frames. All frames of a batch carry the same time stamp, so
// the last one should leave soon after the first.
const taggedBatch = 256

// newLane returns the share of stream s that belongs to queue.
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

// pace sets the rate: r is this queue's share of the stream's rate.
func (l *lane) pace(r pace.Rate, scale float64) {
	if l.max = r.IsMax(); !l.max {
		r.PerSecond = max(1, uint64(scale*float64(r.PerSecond)+0.5))
	}
	l.silent, l.paced = scale == 0, r
}

// enter starts a step at time began, which may lie somewhat in the past.
func (l *lane) enter(r pace.Rate, scale float64, began int64) {
	l.pace(r, scale)
	l.clock = pace.NewClock(l.paced, l.mean, catchUp)
	l.clock.Space(l.spacing, l.seed)
	l.clock.Permits(began)
}

// change changes the rate within a step. The time slot of the next frame is continued at the new rate, so that a
// change adds no frame. After a silence, and after a time without a rate, a new slot begins.
func (l *lane) change(r pace.Rate, scale float64, now int64) {
	fresh := l.silent || l.max
	if l.pace(r, scale); fresh || l.silent || l.max {
		l.missed += l.clock.Missed()
		l.enter(r, scale, now)
		return
	}
	l.clock.Change(l.paced, now)
}

// leave ends a step whose planned end was until. Frames that were due by then but not sent, because sending them
// would have taken too long, count as missed time.
func (l *lane) leave(until int64) {
	l.missed += l.clock.Missed()
	if l.silent || l.max || l.done == l.ends || pace.Now() < until {
		return
	}
	left := l.clock.Due(until - 1)
	l.missed += time.Duration(float64(left) / l.paced.FramesPerSecond(l.mean) * float64(time.Second))
}

// flowsOf returns how many different flows one queue sends. A queue sends every n-th flow, where n is the number of queues,
// and begins again at the end. So it sends flows/gcd(flows, queues) of them.
func flowsOf(flows, queues int) int {
	a, b := flows, queues
	for b != 0 {
		a, b = b, a%b
	}
	return flows / a
}

// write is the fill callback of Send: it writes the next frame and its tag into slot.
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

// due returns how many frames may be sent now. After until, it returns the frames that were due before until, if
// they can still be made up for.
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

// room returns how many frames one call may send.
func (l *lane) room() int { return int(min(uint64(l.batch), l.ends-l.done)) }

// repeats enables the short path for identical frames, if the sender is a Repeater and only this lane uses it.
func (l *lane) repeats(alone bool) {
	if same := l.filler.Same(); alone && same != nil && !l.tagged {
		l.repeater, _ = l.sender.(method.Repeater)
		l.same = same
	}
}

// hand passes n frames to the sender, by Repeat if it can and by Send otherwise.
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

// send passes n frames to the sender and updates the clock and the counters. Refused frames also use up their time
// slots.
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

// Account tracks the bytes that a sender is expected to have counted. Comparing them with the sender's own counter
// gives the bytes of refused frames. It exists because reading that counter can be expensive. It is not safe for
// concurrent use.
type Account struct{ bytes uint64 }

// NewAccount returns an Account that starts at the current byte counter of s.
func NewAccount(s method.Sender) *Account { return &Account{s.Counters().Bytes} }

// Took records that s accepted the first sent of n frames and returns their bytes on the wire. bytes is the total
// of all n frames. beside is the part of each frame that the sender's own counter does not include.
func (a *Account) Took(s method.Sender, n, sent, bytes, beside int) int {
	if sent < n {
		bytes = int(s.Counters().Bytes-a.bytes) + sent*beside
	}
	a.bytes += uint64(bytes - sent*beside)
	return bytes
}
