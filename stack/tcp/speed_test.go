package tcp

import (
	"reflect"
	"testing"
	"time"

	"loam/stack/tcp/congestion"
	"loam/stack/tcp/ranges"
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// The tests of this file check the speed, the memory and the allocations of connections.

func TestConnIsSmall(t *testing.T) {
	size := reflect.TypeFor[Conn]().Size()
	cc := reflect.TypeOf(congestion.NewCubic()).Elem().Size()
	t.Logf("Conn has %d bytes, its congestion control %d, a sent range %d", size, cc, reflect.TypeFor[sent]().Size())
	if size > 768 { // 768 bytes is a size class of Go's allocator
		t.Errorf("Conn has %d bytes", size)
	}
	if reflect.TypeFor[sent]().Size() > 24 {
		t.Error("a sent range is larger than three words")
	}
}

func TestIdleConnGivesMemoryBack(t *testing.T) {
	c := established(t, &Config{InitialWindow: 40}, ", sackOK")
	c.write(40_000)
	c.drain()
	c.send("A 1001:2001 ack 40001")
	c.drain()
	c.send("A 1:1001 ack 40001")
	c.drain()
	if c.sent.buf == nil || c.rcv.behind == nil {
		t.Fatal("nothing to give back")
	}
	c.advance(trimAfter)
	if c.sent.buf != nil || c.rcv.behind != nil {
		t.Error("an idle connection keeps its records")
	}
	c.wantSilence(time.Hour)
}

// fastConn returns an established connection for benchmarks, with timestamps, SACK, and a large window in
// both directions.
func fastConn(tb testing.TB, cfg Config) (*testConn, *simIn) {
	t := &testing.T{}
	c := newTest(t)
	syn := c.parse("S 0 win 65535 <mss 1460, ws 10, sackOK, ts 7000 0>")
	in := &simIn{t: tb, ring: make([]byte, 1<<20)}
	c.Conn = Accept(c.now, &cfg, testID, c.iss, 0, 1460, syn, &c.out, in)
	c.peerTS = true
	var out Out
	c.Poll(c.now, 1, &out)
	c.now += 10 * ms
	c.Receive(c.now, c.parse("A 1 ack 1 win 65535 <ts 7010 3600000>"))
	if c.State() != Established {
		tb.Fatal("not established")
	}
	c.ack.quick = 0
	return c, in
}

// benchReceive returns a step that receives segments of full size in order.
func benchReceive(tb testing.TB, cfg Config) func() {
	c, in := fastConn(tb, cfg)
	seg := c.parse("A 1:1449 ack 1 win 65535 <ts 7010 3600000>")
	in.committed = 0
	var out Out
	discard := discardIn{in}
	c.Conn.in = &discard
	return func() {
		c.Receive(c.now, seg)
		seg.Seq += 1448
		c.now += 10 * time.Microsecond
		if in.committed-in.consumed > 100_000 {
			in.consumed = in.committed
			c.Consumed(c.now)
		}
		for c.Poll(c.now, 1, &out) {
		}
	}
}

// discardIn copies data without checking it.
type discardIn struct{ *simIn }

func (d *discardIn) WriteAt(p []byte, off uint64) { copy(d.ring[off&(1<<16-1):], p) }
func (d *discardIn) Commit(off uint64)            { d.committed = off }

// benchSend returns a step that sends a segment and receives the acknowledgment of every second one.
func benchSend(tb testing.TB, cfg Config, burst int) func() {
	c, _ := fastConn(tb, cfg)
	c.out.end = 1 << 50
	c.Written(c.now)
	ack := c.parse("A 1 ack 1 win 65535 <ts 7010 3600000>")
	var out Out
	for c.Poll(c.now, burst, &out) {
	}
	per := 2 * uint32(max(1448, burst/1448*1448))
	return func() {
		c.now += 10 * time.Microsecond
		ack.Ack += min(per, uint32(c.flight()))
		ack.TSEcr = c.ts.clock(c.now)
		c.Receive(c.now, ack)
		c.Poll(c.now, burst, &out)
		c.Poll(c.now, burst, &out)
	}
}

func TestNoAllocations(t *testing.T) {
	for name, step := range map[string]func(){
		"receive":       benchReceive(t, Config{}),
		"receive, many": benchReceive(t, Config{Counters: new(Counters)}),
		"send":          benchSend(t, Config{}, 1),
		"send frames":   benchSend(t, Config{Counters: new(Counters)}, 65000),
		"send reno":     benchSend(t, Config{Congestion: congestion.NewReno}, 1),
		"lossy":         benchLossy(t),
	} {
		for range 10_000 { // repeated until windows and rings have grown
			step()
		}
		if n := testing.AllocsPerRun(10_000, step); n != 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

// benchLossy returns a step that sends while every 50th segment is lost and the peer acknowledges
// selectively, and that receives data out of order.
func benchLossy(tb testing.TB) func() {
	c, in := fastConn(tb, Config{})
	c.Conn.in = &discardIn{in}
	c.out.end = 1 << 50
	c.Written(c.now)
	var out Out
	ack := c.parse("A 1 ack 1 win 65535 <ts 7010 3600000>")
	data := c.parse("A 1:1449 ack 1 win 65535 <ts 7010 3600000>")
	next := Seq(c.iss) + 1
	hole := ranges.Span{}
	n := 0
	return func() {
		c.now += 100 * time.Microsecond
		for c.Poll(c.now, 1, &out) {
			if out.Len == 0 {
				continue
			}
			from, to := Seq(out.Seq), Seq(out.Seq).Add(out.Len)
			n++
			switch {
			case hole.From == hole.To && n%50 == 0:
				hole = ranges.Span{From: from, To: to} // this segment counts as lost
			case from == hole.From:
				hole = ranges.Span{}
			}
			next = sequence.Max(next, to)
		}
		ack.TSEcr = c.ts.clock(c.now)
		ack.NumSACK = 0
		ack.Ack = uint32(next)
		if hole.From != hole.To {
			ack.Ack = uint32(hole.From)
			if hole.To != next {
				ack.NumSACK, ack.SACK[0] = 1, wire.SACKBlock{Left: uint32(hole.To), Right: uint32(next)}
			}
		}
		c.Receive(c.now, ack)
		data.Seq += 2 * 1448
		data.Ack = ack.Ack
		c.Receive(c.now, data) // leaves a gap before this segment
		data.Seq -= 1448
		c.Receive(c.now, data) // fills the gap
		data.Seq += 1448
		in.consumed = in.committed
		c.Consumed(c.now)
		if c.Deadline() <= c.now {
			c.Tick(c.now)
		}
	}
}

func BenchmarkReceiveData(b *testing.B) {
	step := benchReceive(b, Config{})
	for b.Loop() {
		step()
	}
}

func BenchmarkSendAndReceiveAck(b *testing.B) {
	step := benchSend(b, Config{}, 1)
	for b.Loop() {
		step()
	}
}

func BenchmarkSendFramesAndReceiveAck(b *testing.B) {
	step := benchSend(b, Config{}, 65000)
	for b.Loop() {
		step()
	}
}

// BenchmarkReceivePureAck measures Receive for an acknowledgment without new data.
func BenchmarkReceivePureAck(b *testing.B) {
	c, _ := fastConn(b, Config{})
	ack := c.parse("A 1 ack 1 win 65535 <ts 7010 3600000>")
	for b.Loop() {
		c.Receive(c.now, ack)
	}
}

// BenchmarkPingPong measures a request of one byte and its reply.
func BenchmarkPingPong(b *testing.B) {
	c, in := fastConn(b, Config{NoDelay: true})
	c.Conn.in = &discardIn{in}
	seg := c.parse("PA 1:2 ack 1 win 65535 <ts 7010 3600000>")
	var out Out
	for b.Loop() {
		c.Receive(c.now, seg)
		in.consumed = in.committed
		c.Consumed(c.now)
		c.out.end++
		c.Written(c.now)
		for c.Poll(c.now, 1, &out) {
		}
		seg.Seq++
		seg.Ack++
		c.now += time.Microsecond
	}
}

// BenchmarkLossy measures a round of sending, selective acknowledgments and
// reassembly.
func BenchmarkLossy(b *testing.B) {
	step := benchLossy(b)
	for b.Loop() {
		step()
	}
}
