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

// lane is one stream on one queue: its share of the frames, of the rate and of
// the count. A worker drives it.
type lane struct {
	sender method.Sender // shared by the lanes of a worker, where the method writes frames
	// account is of the sender, and shared as it is.
	account *Account
	// repeater is the sender if all its frames are same, which then go without being
	// written each time; else nil.
	repeater method.Repeater
	same     []byte
	// leaver is the sender if a checksum is left to the device: see
	// frame.Program.Checksum; else nil.
	leaver        method.ChecksumLeaver
	start, offset int
	filler        *frame.Filler
	clock         *pace.Clock
	spread        *pace.Spread
	fill          func(slot []byte) int // of Send: made once, since making it allocates

	rate   pace.Rate     // this queue's share
	paced  pace.Rate     // in this step
	mean   float64       // size of frames
	max    bool          // there is no rate
	silent bool          // nothing goes in this step
	missed time.Duration // in the steps that are over

	ends  uint64 // frames to send; MaxUint64: no end
	done  uint64
	batch int // frames that the sender is given at once, at the most

	tagged bool
	flow   int      // of the next frame
	next   []uint64 // sequence number of each flow
	ids    []uint16
	sent   int64 // time of the batch, in the tags
	bytes  int   // filled since the last Send, FCS included

	frames, wire atomic.Uint64 // sent, and bytes in them with FCS
	ended        int64         // when the last frame of a count had had its time; 0: it has not gone
}

// catchUp is how long a stall may be that is made up for in full, by frames that
// follow one another closely: so the rate over a second is held on machines that
// are elsewhere for some hundredths of one.
const catchUp = 200 * time.Millisecond

// taggedBatch is the most frames with tags that a sender is given at once where nobody says
// otherwise: they have one time, and the last of a batch is to leave soon after it.
const taggedBatch = 256

// newLane makes the share that queue has of a stream.
func newLane(s *Stream, p *frame.Program, index, queue, queues int) *lane {
	l := &lane{
		filler: p.Filler(queue, queues),
		rate:   s.Rate.Share(queue, queues),
		mean:   p.Sizes().Mean(),
		spread: pace.NewSpread(),
		max:    s.Rate.IsMax(),
		ends:   math.MaxUint64,
		tagged: !s.Bare,
	}
	if s.Count != 0 {
		l.ends = s.Count*uint64(queue+1)/uint64(queues) - s.Count*uint64(queue)/uint64(queues)
	}
	own := flowsOf(s.Flows, queues)
	l.next, l.ids = make([]uint64, min(own, sink.MaxFlows)), make([]uint16, own)
	for f := range l.ids {
		l.ids[f] = uint16(sink.NewID(index, queue, f))
	}
	l.fill = l.write
	return l
}

// enter begins a step at a time, which may be some while ago.
func (l *lane) enter(scale float64, began int64) {
	r := l.rate
	if !l.max {
		r.PerSecond = max(1, uint64(scale*float64(r.PerSecond)+0.5))
	}
	l.silent, l.paced = scale == 0, r
	l.clock = pace.NewClock(r, l.mean, catchUp)
	l.clock.Permits(began)
}

// leave ends a step that was to end at until. What was due by then and has not
// gone, since that would have taken too long, is missed.
func (l *lane) leave(until int64) {
	l.missed += l.clock.Missed()
	if l.silent || l.max || l.done == l.ends || pace.Now() < until {
		return
	}
	left := l.clock.Permits(until - 1)
	l.missed += time.Duration(float64(left) / l.paced.FramesPerSecond(l.mean) * float64(time.Second))
}

// flowsOf is how many flows one of so many queues has: of every queue's frames
// the flow cycles, with the number of queues as its step.
func flowsOf(flows, queues int) int {
	a, b := flows, queues
	for b != 0 {
		a, b = b, a%b
	}
	return flows / a
}

// write is what Send asks for a frame.
func (l *lane) write(slot []byte) int {
	n := l.filler.Next(slot)
	l.bytes += l.filler.WireLen(n)
	if l.tagged {
		numbers := &l.next[l.flow%sink.MaxFlows]
		measure.Tag{Stream: l.ids[l.flow], Sequence: *numbers, Sent: l.sent}.Put(l.filler.Body(slot))
		*numbers++
		if l.flow++; l.flow == len(l.ids) {
			l.flow = 0
		}
	}
	return n
}

// due is how many frames may go now, or were to go until until, if that is over.
func (l *lane) due(now, until int64) int {
	if l.silent {
		return 0
	}
	if now >= until {
		if l.max || now > until+int64(catchUp) {
			return 0
		}
		now = until - 1
	}
	batch := l.batch
	if left := l.ends - l.done; left < uint64(batch) {
		batch = int(left)
	}
	return min(l.clock.Permits(now), batch)
}

// repeats has frames that do not change sent by the shorter way, if the sender has
// one and serves nobody else.
func (l *lane) repeats(alone bool) {
	if same := l.filler.Same(); alone && same != nil && !l.tagged {
		l.repeater, _ = l.sender.(method.Repeater)
		l.same = same
	}
}

// hand gives n frames to the sender.
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

// send hands over n frames. Those that are refused have had their time, too.
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

// Account is what a sender should have counted of bytes, by which those of refused frames are told
// from the others': what it has counted may be dear to ask for. It is used by one goroutine.
type Account struct{ bytes uint64 }

// NewAccount is that of a sender as it is.
func NewAccount(s method.Sender) *Account { return &Account{s.Counters().Bytes} }

// Took takes in that of n frames with so many bytes on the wire, of which each has beside bytes that
// the sender does not see, sent were handed over. It returns the bytes of these.
func (a *Account) Took(s method.Sender, n, sent, bytes, beside int) int {
	if sent < n {
		bytes = int(s.Counters().Bytes-a.bytes) + sent*beside
	}
	a.bytes += uint64(bytes - sent*beside)
	return bytes
}
