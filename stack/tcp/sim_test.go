package tcp

// Two connections joined by a virtual link with a rate, a delay, a queue, loss, reordering and duplication,
// in virtual time. Random choices come from a seed, so a run can be repeated. Received data is checked byte
// by byte.

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"loam/wire"
)

// path is one direction of the link.
type path struct {
	rate    int // bits per second
	delay   time.Duration
	queue   int     // bytes waiting for the link; further packets are dropped
	mark    int     // queue length in bytes from which ECN-capable segments are marked; 0: never
	loss    float64 // probability that a segment is lost
	reorder float64 // probability of an extra delay of up to the duration late
	late    time.Duration
	dup     float64 // probability that a segment arrives twice
	outage  func(at Time) bool
	mtu     func(at Time) int // larger packets are lost; nil: none are

	// overtaken is the probability that a segment is held back until one to three later segments have passed,
	// or for the duration late if there are none. Package fault calls this reordering.
	overtaken float64

	busy Time // time until which the link is busy
	held []*heldSegment
}

// heldSegment is a segment that waits to be overtaken.
type heldSegment struct {
	seg   *Segment
	yield int
	gone  bool // the segment has arrived
}

// simHost is one end of the link.
type simHost struct {
	*Conn
	sim      *sim
	peer     *simHost
	path     path  // path of segments to the peer
	shared   *path // if not nil, the path that this host shares with others
	in       simIn
	out      outStream
	counters Counters
	burst    int
	total    uint64 // bytes to write
	buffer   uint64 // maximum of unacknowledged bytes
	slow     int    // bytes that the program reads per millisecond; 0: all at once
	notify   uint64 // offset of reading at which Consumed is called next
	armed    Time   // wake-up in the event queue
	accept   func(*Segment) *Conn
	finished Time // time at which the peer's stream had been read to its end
	segs     int
	whole    bool // a frame travels as a whole and arrives as one segment
	pauses   *pauses
}

// pauses are times at which a host does not run, because its machine does other work. Arrivals and timers
// wait until it runs again. The lengths of pauses and of the times between them are exponential.
type pauses struct {
	rng       *rand.Rand
	run, stop time.Duration // mean lengths of the times between pauses (run), and of the pauses (stop)
	ends      []Time        // ends of the times between pauses and of the pauses, alternately
}

// next returns the earliest time at which the host runs. The result is not before the
// time at.
func (p *pauses) next(at Time) Time {
	if p == nil {
		return at
	}
	if len(p.ends) == 0 {
		p.ends = append(p.ends, at)
	}
	for p.ends[len(p.ends)-1] <= at || len(p.ends)%2 == 1 {
		mean := p.run
		if len(p.ends)%2 == 0 {
			mean = p.stop
		}
		p.ends = append(p.ends, p.ends[len(p.ends)-1]+Time(p.rng.ExpFloat64()*float64(mean)))
	}
	i := sort.Search(len(p.ends), func(i int) bool { return p.ends[i] > at })
	if i%2 == 1 {
		return at
	}
	return p.ends[i]
}

// sim is a simulation with two hosts.
type sim struct {
	t      testing.TB
	rng    *rand.Rand
	now    Time
	events simEvents
	serial int
	a, b   *simHost
	steps  int
	turn   Time // segments that arrive within a turn are processed together; 0: one by one
	long   bool // the invariants are checked only now and then, because the run is long
	rare   int
}

// simEvent is the arrival of a segment, or a wake-up without one.
type simEvent struct {
	at     Time
	serial int
	host   *simHost
	seg    *Segment
	held   *heldSegment // if not nil, seg waited here to be overtaken
}

type simEvents []simEvent

func (q simEvents) Len() int { return len(q) }
func (q simEvents) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q simEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simEvents) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simEvents) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// simIn is an Incoming with a ring, as in the stack. A place whose byte has not arrived holds the complement
// of the expected byte.
type simIn struct {
	t         testing.TB
	ring      []byte
	committed uint64
	consumed  uint64
}

func newSimIn(t testing.TB, size int) simIn {
	n := 1
	for n < size+65536 {
		n *= 2
	}
	s := simIn{t: t, ring: make([]byte, n)}
	s.fill(0, n, &unpatternBytes)
	return s
}

// fill writes a pattern, which is passed as what, to the offsets [off, off+n).
func (s *simIn) fill(off uint64, n int, what *[2 * patternPeriod]byte) {
	for n > 0 {
		at := off & uint64(len(s.ring)-1)
		k := copy(s.ring[at:], what[off%patternPeriod:][:min(n, patternPeriod)])
		off, n = off+uint64(k), n-k
	}
}

func (s *simIn) WriteAt(p []byte, off uint64) {
	if off < s.committed || off+uint64(len(p)) > s.consumed+uint64(len(s.ring)) {
		s.t.Fatalf("WriteAt(%d, %d bytes): committed %d, consumed %d", off, len(p), s.committed, s.consumed)
	}
	k := copy(s.ring[off&uint64(len(s.ring)-1):], p)
	copy(s.ring, p[k:])
}

func (s *simIn) Commit(off uint64) {
	for i := s.committed; i < off; {
		at := i & uint64(len(s.ring)-1)
		n := min(int(off-i), len(s.ring)-int(at), patternPeriod)
		if !bytes.Equal(s.ring[at:][:n], pattern(i, n)) {
			s.t.Fatalf("bytes %d to %d are not what was sent", i, i+uint64(n))
		}
		s.fill(i+uint64(len(s.ring)), n, &unpatternBytes) // overwrites the bytes, so that the next pass over the ring finds no old data
		i += uint64(n)
	}
	s.committed = off
}

func (s *simIn) Consumed() uint64 { return s.consumed }

// simSetup holds the parameters of a simulation.
type simSetup struct {
	seed   uint64
	ab, ba path
	cfgA   Config
	cfgB   Config
	bytesA uint64 // number of bytes that host a sends to host b
	bytesB uint64
	buffer uint64 // send buffer of both hosts, in bytes
	burst  int    // maxPayload of both hosts
	slow   int    // number of bytes that host b reads per millisecond; 0: all
	mss    int
	id     ID   // the ID of host a; zero: testID
	whole  bool // both hosts send whole frames
	turn   Time
	pauses *pauses // pauses of host a
}

func newSim(t testing.TB, s simSetup) *sim {
	w := &sim{t: t, rng: rand.New(rand.NewPCG(s.seed, 7)), now: time.Hour, turn: s.turn}
	if s.buffer == 0 {
		s.buffer = 4 << 20
	}
	if s.mss == 0 {
		s.mss = 1460
	}
	w.a = &simHost{sim: w, path: s.ab, total: s.bytesA, buffer: s.buffer, burst: s.burst, whole: s.whole}
	w.b = &simHost{sim: w, path: s.ba, total: s.bytesB, buffer: s.buffer, burst: s.burst, slow: s.slow, whole: s.whole}
	w.a.peer, w.b.peer, w.a.pauses = w.b, w.a, s.pauses
	for i, h := range []*simHost{w.a, w.b} {
		cfg := s.cfgA
		if i == 1 {
			cfg = s.cfgB
		}
		cfg.Counters = &h.counters
		h.in = newSimIn(t, min(cfg.maxReceiveBuffer(), int(h.peer.total)))
		h.armed = Never
		id := s.id
		if id == (ID{}) {
			id = testID
		}
		iss := uint32(w.rng.Uint64())
		if i == 0 {
			h.Conn = Dial(w.now, &cfg, id, iss, uint32(w.rng.Uint64()), s.mss, &h.out, &h.in)
			continue
		}
		id.Local, id.Remote = id.Remote, id.Local
		h.accept = func(syn *Segment) *Conn {
			return Accept(w.now, &cfg, id, iss, 77, s.mss, syn, &h.out, &h.in)
		}
	}
	w.a.step(nil)
	return w
}

// arrives processes one segment.
func (h *simHost) arrives(seg *Segment) {
	h.segs++
	switch {
	case h.Conn != nil:
		h.Receive(h.sim.now, seg)
	case seg.Flags == wire.SYN || seg.Flags == wire.SYN|wire.ECE|wire.CWR:
		h.Conn = h.accept(seg)
	}
}

// step performs the owner's work at an event.
func (h *simHost) step(seg *Segment) {
	now := h.sim.now
	if seg != nil {
		h.arrives(seg)
	}
	if h.Conn == nil {
		return
	}
	if h.Deadline() <= now {
		h.Tick(now)
	}
	h.program()
	var out Out
	for n := 0; h.Poll(now, h.burst, &out); n++ {
		h.transmit(&out)
		if n > 100000 {
			h.sim.t.Fatalf("Poll does not end: %+v", h.Info(now))
		}
	}
	if h.sim.rare++; !h.sim.long || h.sim.rare%256 == 0 {
		checkInvariants(h.sim.t, h.Conn)
	}
	h.notify = h.in.consumed + uint64(h.Notice())
	if at := h.Deadline(); at < h.armed {
		h.sim.at(at, h, nil)
		h.armed = at
	}
}

// program writes and reads as much as possible.
func (h *simHost) program() {
	if room := h.out.released + h.buffer; h.out.end < h.total && h.out.end < room {
		h.out.end = min(h.total, room)
		h.Written(h.sim.now)
	}
	if h.slow == 0 && h.in.consumed < h.in.committed {
		h.in.consumed = h.in.committed
		h.noteConsumed()
	}
	if h.out.end == h.total && !h.WriteClosed() && h.State() >= Established {
		h.CloseWrite(h.sim.now)
	}
	if h.ReadClosed() && h.finished == 0 && h.in.consumed == h.in.committed {
		h.finished = h.sim.now
	}
}

// readSlowly reads once per millisecond.
func (h *simHost) readSlowly() {
	if n := min(uint64(h.slow), h.in.committed-h.in.consumed); n > 0 && h.Conn != nil {
		h.in.consumed += n
		h.noteConsumed()
	}
}

// noteConsumed calls Consumed only as often as Notice requires.
func (h *simHost) noteConsumed() {
	if h.in.consumed >= h.notify {
		h.Consumed(h.sim.now)
	}
}

// transmit cuts a frame into segments and puts them on the path.
func (h *simHost) transmit(out *Out) {
	if out.Len > out.MSS && h.burst <= out.MSS {
		h.sim.t.Fatalf("a frame of %d bytes where the owner takes %d", out.Len, h.burst)
	}
	for sent := 0; ; {
		n := min(out.Len-sent, max(out.MSS, 1))
		if h.whole {
			n = out.Len
		}
		seg := &Segment{TCP: out.TCP, Payload: make([]byte, n)}
		seg.Seq += uint32(sent)
		copy(seg.Payload, pattern(out.Off+uint64(sent), n))
		if sent > 0 {
			seg.Flags &^= wire.CWR
		}
		if sent += n; sent < out.Len {
			seg.Flags &^= wire.FIN | wire.PSH
		}
		h.carry(seg, out.ECT)
		if sent >= out.Len {
			return
		}
	}
}

// carry transports a segment over the link to the peer.
func (h *simHost) carry(seg *Segment, ect bool) {
	w, p := h.sim, &h.path
	if h.shared != nil {
		p = h.shared
	}
	size := len(seg.Payload) + seg.TCP.Len() + HeadersLen(h.ID().Remote.Addr()) - wire.TCPMinLen
	start := max(w.now, p.busy)
	waiting := int(int64(start-w.now) * int64(p.rate) / 8 / int64(time.Second))
	if p.queue > 0 && waiting+size > p.queue {
		return
	}
	p.busy = start + Time(size)*8*time.Second/Time(p.rate)
	if p.mark > 0 && ect && waiting > p.mark {
		seg.CE = true
	}
	if w.rng.Float64() < p.loss || p.outage != nil && p.outage(w.now) {
		return
	}
	if p.mtu != nil && size > p.mtu(w.now) {
		return
	}
	at := p.busy + p.delay
	if w.rng.Float64() < p.reorder {
		at += Time(w.rng.Int64N(int64(p.late)))
	}
	if p.overtaken > 0 && w.rng.Float64() < p.overtaken {
		held := &heldSegment{seg: seg, yield: 1 + w.rng.IntN(3)}
		p.held = append(p.held, held)
		w.push(simEvent{at: at + p.late, host: h.peer, seg: seg, held: held})
		return
	}
	w.at(at, h.peer, seg)
	if w.rng.Float64() < p.dup {
		again := *seg
		w.at(at+p.delay/10, h.peer, &again)
	}
	p.overtake(at, h.peer)
}

// overtake releases held segments that have been overtaken often enough by a segment that arrives at the
// given time.
func (p *path) overtake(at Time, to *simHost) {
	waiting := p.held[:0]
	for _, s := range p.held {
		switch s.yield--; {
		case s.gone:
		case s.yield == 0:
			to.sim.push(simEvent{at: at, host: to, seg: s.seg, held: s})
		default:
			waiting = append(waiting, s)
		}
	}
	p.held = waiting
}

func (w *sim) at(at Time, h *simHost, seg *Segment) { w.push(simEvent{at: at, host: h, seg: seg}) }

func (w *sim) push(e simEvent) {
	if w.turn > 0 && e.seg != nil {
		e.at = (e.at + w.turn - 1) / w.turn * w.turn
	}
	e.at = e.host.pauses.next(e.at)
	w.serial++
	e.serial = w.serial
	heap.Push(&w.events, e)
}

// arrival takes the next event and all other segments that arrive within the same turn (sim.turn). It returns the last
// one.
func (w *sim) arrival() simEvent {
	for {
		e := heap.Pop(&w.events).(simEvent)
		w.now = e.at
		if e.held != nil {
			if e.held.gone {
				e.seg = nil
			}
			e.held.gone = true
		}
		if w.turn == 0 || e.seg == nil || len(w.events) == 0 || w.events[0].at != e.at || w.events[0].host != e.host {
			return e
		}
		e.host.arrives(e.seg)
	}
}

// run runs the simulation until both connections have ended or the time limit has passed.
func (w *sim) run(limit time.Duration) {
	w.t.Helper()
	end := w.now + limit
	nextRead := w.now
	for len(w.events) > 0 {
		if w.b.slow > 0 && nextRead < w.events[0].at && w.b.finished == 0 {
			w.now = max(w.now, nextRead)
			nextRead += ms
			w.b.readSlowly()
			w.b.step(nil)
			continue
		}
		w.take(w.arrival())
		w.steps++
		if w.now > end {
			w.t.Fatalf("not finished after %v:\na %+v\nb %+v", limit, w.a.Info(w.now), w.b.Info(w.now))
		}
	}
	for _, h := range []*simHost{w.a, w.b} {
		if h.Conn == nil || !h.Done() || h.Err() != nil {
			w.t.Fatalf("an end is not done: %+v", h.Info(w.now))
		}
		if h.in.committed != h.peer.total || h.out.released != h.total {
			w.t.Fatalf("%d of %d bytes have arrived, %d of %d are acknowledged", h.in.committed, h.peer.total, h.out.released, h.total)
		}
	}
}

// until runs the simulation until the given time.
func (w *sim) until(end Time) {
	for len(w.events) > 0 && w.events[0].at <= end {
		w.take(w.arrival())
	}
}

// take processes an event at its host. It ignores a wake-up that an earlier one has replaced.
func (w *sim) take(e simEvent) {
	if e.seg == nil {
		if e.held == nil && e.at != e.host.armed {
			return
		}
		e.host.armed = Never
	}
	e.host.step(e.seg)
}

// rate returns the rate of data received by b in bits per second.
func (w *sim) rate() float64 {
	return float64(w.a.total*8) / (w.b.finished - time.Hour).Seconds()
}

func (w *sim) String() string {
	i := w.a.Info(w.now)
	return fmt.Sprintf("%.2f Mb/s, %d segments, %d again, %d timeouts, %d recoveries, %d undone, %d probes",
		w.rate()/1e6, i.DataSegmentsOut, i.TotalRetrans, w.a.counters[Timeouts], w.a.counters[FastRecoveries],
		w.a.counters[Undos], w.a.counters[TailProbes])
}
