package tcp

// Helpers of this package's tests. A test plays the peer of one connection by hand, in virtual time:
//
//	c.send("PA 1:1001 ack 1 win 5000")   a segment arrives
//	c.want("A 1 ack 1001")               the next segment that the connection sends
//	c.wantIdle()                         it has nothing to send
//	c.advance(40 * time.Millisecond)     time passes; timers run
//
// Numbers are relative to each side's initial sequence number, so the SYN is 0 and the first byte 1. The
// notation of a segment is
//
//	flags seq[:end] [ack n] [win n] [urg n] [CE] [<mss n, ws n, sackOK, ts val ecr, nots, sack a-b c-d>]
//
// The method want always compares flags, seq, end and ack. It compares other fields only if they are given;
// "<>" means no options.

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"loam/wire"
)

const ms = time.Millisecond

var testID = ID{
	Local:  netip.MustParseAddrPort("192.0.2.1:80"),
	Remote: netip.MustParseAddrPort("192.0.2.2:40000"),
}

const (
	testISS = 1_000_000 // initial sequence number of the connection under test
	testIRS = 5_000_000 // initial sequence number of the peer
)

// outStream is an Outgoing whose bytes follow a known pattern.
type outStream struct{ end, released uint64 }

func (s *outStream) End() uint64 { return s.end }

func (s *outStream) Release(off uint64) {
	if off < s.released || off > s.end {
		panic(fmt.Sprintf("released %d after %d of %d", off, s.released, s.end))
	}
	s.released = off
}

// Every stream has the same bytes, with a prime period. patternBytes holds them twice, so that any part can
// be copied in one piece; unpatternBytes holds their complements.
const patternPeriod = 65521

var patternBytes, unpatternBytes = func() (p, u [2 * patternPeriod]byte) {
	x := uint32(1)
	for i := range patternPeriod {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
		p[i+patternPeriod], u[i], u[i+patternPeriod] = p[i], ^p[i], ^p[i]
	}
	return p, u
}()

// pattern returns n bytes of a stream, beginning at the offset off. n is at most
// patternPeriod.
func pattern(off uint64, n int) []byte { return patternBytes[off%patternPeriod:][:n] }

// inStream is an Incoming that checks the promises of Conn.
type inStream struct {
	t         testing.TB
	conn      *Conn
	data      []byte // bytes of the stream, by offset
	have      []bool
	committed uint64
	consumed  uint64
	discard   bool // do not keep data
}

func (s *inStream) WriteAt(p []byte, off uint64) {
	if off < s.committed {
		s.t.Fatalf("WriteAt(%d) in front of what was committed, %d", off, s.committed)
	}
	if edge := s.conn.rcv.off + uint64(s.conn.rcv.edge.Sub(s.conn.rcv.nxt)); off+uint64(len(p)) > edge {
		s.t.Fatalf("WriteAt(%d, %d bytes) beyond the window, %d", off, len(p), edge)
	}
	if s.discard {
		return
	}
	for len(s.data) < int(off)+len(p) {
		s.data, s.have = append(s.data, 0), append(s.have, false)
	}
	copy(s.data[off:], p)
	for i := range p {
		s.have[int(off)+i] = true
	}
}

func (s *inStream) Commit(off uint64) {
	if off <= s.committed {
		s.t.Fatalf("Commit(%d) after %d", off, s.committed)
	}
	if !s.discard {
		for i := s.committed; i < off; i++ {
			if !s.have[i] {
				s.t.Fatalf("Commit(%d) with byte %d missing", off, i)
			}
			if s.data[i] != pattern(i, 1)[0] {
				s.t.Fatalf("byte %d is %#x, not %#x", i, s.data[i], pattern(i, 1)[0])
			}
		}
	}
	s.committed = off
}

func (s *inStream) Consumed() uint64 { return s.consumed }

// testConn is a connection under test and its peer.
type testConn struct {
	*Conn
	t        *testing.T
	now      Time
	out      outStream
	in       inStream
	counters Counters
	burst    int    // maxPayload for Poll
	irs, iss uint32 // initial sequence numbers of the peer and of the connection under test

	// Negotiated options and the last values seen, for the timestamps in the peer's segments.
	peerTS bool
	tsEcho uint32
	reads  bool // the program reads at once
}

// newTest returns a testConn without its Conn.
func newTest(t *testing.T) *testConn {
	return &testConn{t: t, now: time.Hour, burst: 1, iss: testISS, irs: testIRS, reads: true}
}

func (c *testConn) config(cfg *Config) *Config {
	if cfg == nil {
		cfg = &Config{}
	}
	copied := *cfg
	copied.Counters = &c.counters
	return &copied
}

// dial begins an active open.
func dial(t *testing.T, cfg *Config) *testConn {
	c := newTest(t)
	c.Conn = Dial(c.now, c.config(cfg), testID, c.iss, 0, 1460, &c.out, &c.in)
	c.in.t, c.in.conn = t, c.Conn
	return c
}

// accept begins a passive open with a SYN like "S 0 win 65535 <mss 1000>".
func accept(t *testing.T, cfg *Config, syn string) *testConn {
	return acceptAt(t, cfg, syn, testISS, testIRS)
}

func acceptAt(t *testing.T, cfg *Config, syn string, iss, irs uint32) *testConn {
	c := newTest(t)
	c.iss, c.irs = iss, irs
	seg := c.parse(syn)
	c.peerTS = seg.HasTimestamps
	c.Conn = Accept(c.now, c.config(cfg), testID, c.iss, 0, 1460, seg, &c.out, &c.in)
	c.in.t, c.in.conn = t, c.Conn
	return c
}

// established opens a connection with a SYN from the peer that has the given options. Data segments have 1000
// bytes (988 with timestamps). The peer's window is 50000, and the quick acknowledgments at the start are
// over.
func established(t *testing.T, cfg *Config, options string) *testConn {
	c := accept(t, cfg, "S 0 win 50000 <mss 1000"+options+">")
	c.finishOpen()
	return c
}

func (c *testConn) finishOpen() {
	c.t.Helper()
	c.want("SA 0 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1 win 50000")
	c.wantState(Established)
	c.wantIdle()
	c.Conn.ack.quick = 0
	c.Conn.ack.last = at(c.now)
}

// send delivers a segment to the connection.
func (c *testConn) send(text string) {
	c.t.Helper()
	seg := c.parse(text)
	if c.peerTS && !seg.HasTimestamps && !strings.Contains(text, "nots") {
		seg.HasTimestamps = true
		seg.TSVal, seg.TSEcr = c.peerClock(), c.tsEcho
	}
	c.Receive(c.now, seg)
	c.read()
}

// peerClock returns the timestamp clock of the peer.
func (c *testConn) peerClock() uint32 { return 7000 + uint32((c.now-time.Hour)/ms) }

// read makes the program read everything that is readable.
func (c *testConn) read() {
	if c.reads && c.in.consumed != c.in.committed {
		c.in.consumed = c.in.committed
		c.Consumed(c.now)
	}
}

// write makes the program write n bytes.
func (c *testConn) write(n int) {
	c.out.end += uint64(n)
	c.Written(c.now)
}

// want polls the next segment and compares it with text.
func (c *testConn) want(text string) *Out {
	c.t.Helper()
	out := c.poll()
	if out == nil {
		c.t.Fatalf("%v: nothing is sent, want %s", c.at(), text)
	}
	c.compare(out, text)
	return out
}

func (c *testConn) poll() *Out {
	c.t.Helper()
	var out Out
	pending := c.Pending(c.now)
	sent := c.Poll(c.now, c.burst, &out)
	if pending != sent {
		c.t.Fatalf("%v: Pending is %v, Poll %v", c.at(), pending, sent)
	}
	checkInvariants(c.t, c.Conn)
	if !sent {
		return nil
	}
	if out.HasTimestamps {
		c.tsEcho = out.TSVal
	}
	return &out
}

// wantIdle checks that there is nothing to send.
func (c *testConn) wantIdle() {
	c.t.Helper()
	if out := c.poll(); out != nil {
		c.t.Fatalf("%v: sends %s, want nothing", c.at(), c.format(out))
	}
}

// drain polls everything that can be sent and returns the number of segments.
func (c *testConn) drain() int {
	c.t.Helper()
	for n := 0; ; n++ {
		if c.poll() == nil {
			return n
		}
		if n > 10000 {
			c.t.Fatal("Poll does not end")
		}
	}
}

// advance advances the time. Timers run meanwhile; nothing is polled.
func (c *testConn) advance(d time.Duration) {
	c.t.Helper()
	end := c.now + d
	for n := 0; c.Deadline() <= end; n++ {
		c.now = max(c.now, c.Deadline())
		c.Tick(c.now)
		if n > 1000 {
			c.t.Fatalf("%v: timers do not stop", c.at())
		}
	}
	c.now = end
}

// wantSilence checks that the connection sends nothing for d.
func (c *testConn) wantSilence(d time.Duration) {
	c.t.Helper()
	end := c.now + d
	for c.Deadline() <= end {
		c.now = max(c.now, c.Deadline())
		c.Tick(c.now)
		c.wantIdle()
	}
	c.now = end
	c.wantIdle()
}

// wantTimer checks that the connection sends nothing until a timer expires after d, and then has a segment to
// send.
func (c *testConn) wantTimer(d time.Duration) {
	c.t.Helper()
	start := c.now
	for !c.Pending(c.now) {
		if c.Deadline() == Never {
			c.t.Fatalf("%v: no timer is armed, want one in %v", c.at(), d)
		}
		c.now = max(c.now, c.Deadline())
		c.Tick(c.now)
		if c.State() == Closed {
			break
		}
	}
	if got := c.now - start; got != d {
		c.t.Fatalf("%v: the timer ran after %v, want %v", c.at(), got, d)
	}
}

func (c *testConn) wantState(s State) {
	c.t.Helper()
	if c.State() != s {
		c.t.Fatalf("%v: state is %v, want %v", c.at(), c.State(), s)
	}
}

// wantEnd checks that the connection has ended for the reason err.
func (c *testConn) wantEnd(err error) {
	c.t.Helper()
	c.wantIdle()
	if !c.Done() || c.State() != Closed || c.Err() != err {
		c.t.Fatalf("%v: state %v, done %v, err %v; want it ended with %v", c.at(), c.State(), c.Done(), c.Err(), err)
	}
	if c.Deadline() != Never {
		c.t.Fatalf("%v: a timer is armed after the end", c.at())
	}
}

// wantCount checks a counter and resets it.
func (c *testConn) wantCount(k Counter, n uint64) {
	c.t.Helper()
	if c.counters[k] != n {
		c.t.Fatalf("%v: %v counted %d times, want %d", c.at(), k, c.counters[k], n)
	}
	c.counters[k] = 0
}

// wantReadable checks the total number of committed bytes.
func (c *testConn) wantReadable(n uint64) {
	c.t.Helper()
	if c.in.committed != n {
		c.t.Fatalf("%v: %d bytes are readable, want %d", c.at(), c.in.committed, n)
	}
}

// wantCwnd checks the congestion window in segments.
func (c *testConn) wantCwnd(segs float64) {
	c.t.Helper()
	if got := float64(c.window.Size) / float64(c.window.MSS); got < segs-0.01 || got > segs+0.01 {
		c.t.Fatalf("%v: congestion window is %.2f segments, want %.2f", c.at(), got, segs)
	}
}

func (c *testConn) at() string { return fmt.Sprint("at ", c.now-time.Hour) }

// parse decodes the notation of a segment from the peer.
func (c *testConn) parse(text string) *Segment {
	c.t.Helper()
	var s Segment
	s.SrcPort, s.DstPort = testID.Remote.Port(), testID.Local.Port()
	head, options, _ := strings.Cut(text, "<")
	words := strings.Fields(head)
	s.Flags = parseFlags(c.t, words[0])
	from, to := c.parseRange(words[1])
	s.Seq = c.irs + from
	s.Payload = make([]byte, to-from)
	copy(s.Payload, pattern(uint64(from)-1, len(s.Payload)))
	for i := 2; i < len(words); i += 2 {
		if words[i] == "CE" {
			s.CE = true
			i--
			continue
		}
		n := c.number(words[i+1])
		switch words[i] {
		case "ack":
			s.Ack = c.iss + n
		case "rawack":
			s.Ack = n
		case "win":
			s.Window = uint16(n)
		case "urg":
			s.Urgent = uint16(n)
		default:
			c.t.Fatalf("what is %q?", words[i])
		}
	}
	if s.Flags.Has(wire.ACK) && !strings.Contains(head, "win") {
		s.Window = 50000 >> c.peerScale()
	}
	c.parseOptions(&s, strings.TrimSuffix(strings.TrimSpace(options), ">"))
	return &s
}

func (c *testConn) peerScale() uint8 {
	if c.Conn == nil {
		return 0
	}
	return c.snd.scale
}

func (c *testConn) parseOptions(s *Segment, text string) {
	for _, o := range strings.Split(text, ",") {
		w := strings.Fields(o)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "mss":
			s.MSS = uint16(c.number(w[1]))
		case "ws":
			s.HasWindowScale, s.WindowScale = true, uint8(c.number(w[1]))
		case "sackOK":
			s.SACKPermitted = true
		case "ts":
			s.HasTimestamps = true
			s.TSVal, s.TSEcr = c.number(w[1]), c.number(w[2])
		case "nots":
		case "sack":
			for i, b := range w[1:] {
				left, right, _ := strings.Cut(b, "-")
				s.SACK[i] = wire.SACKBlock{Left: c.iss + c.number(left), Right: c.iss + c.number(right)}
				s.NumSACK++
			}
		default:
			c.t.Fatalf("what is option %q?", o)
		}
	}
}

func (c *testConn) parseRange(w string) (from, to uint32) {
	left, right, is := strings.Cut(w, ":")
	from = c.number(left)
	if !is {
		return from, from
	}
	return from, c.number(right)
}

func (c *testConn) number(w string) uint32 {
	c.t.Helper()
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		c.t.Fatalf("not a number: %q", w)
	}
	return uint32(n)
}

func parseFlags(t *testing.T, w string) (f wire.TCPFlags) {
	t.Helper()
	const letters = "FSRPAUECN"
	for _, l := range w {
		i := strings.IndexRune(letters, l)
		if i < 0 {
			t.Fatalf("what is flag %c?", l)
		}
		f |= 1 << i
	}
	return f
}

// format returns a sent segment in the same notation.
func (c *testConn) format(out *Out) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d", out.Flags, int32(out.Seq-c.iss))
	if out.Len > 0 {
		fmt.Fprintf(&b, ":%d", int32(out.Seq-c.iss)+int32(out.Len))
	}
	if out.Flags.Has(wire.ACK) {
		fmt.Fprintf(&b, " ack %d", int32(out.Ack-c.irs))
	}
	return b.String()
}

func (c *testConn) formatOptions(out *Out) string {
	var o []string
	if out.MSS2() != 0 {
		o = append(o, fmt.Sprint("mss ", out.MSS2()))
	}
	if out.HasWindowScale {
		o = append(o, fmt.Sprint("ws ", out.WindowScale))
	}
	if out.SACKPermitted {
		o = append(o, "sackOK")
	}
	if out.HasTimestamps {
		o = append(o, fmt.Sprintf("ts %d %d", out.TSVal, out.TSEcr))
	}
	if out.NumSACK > 0 {
		s := "sack"
		for _, b := range out.SACK[:out.NumSACK] {
			s += fmt.Sprintf(" %d-%d", int32(b.Left-c.irs), int32(b.Right-c.irs))
		}
		o = append(o, s)
	}
	return "<" + strings.Join(o, ", ") + ">"
}

// MSS2 returns the MSS option, which the field MSS of Out hides.
func (o *Out) MSS2() uint16 { return o.TCP.MSS }

// compare fails if the sent segment out differs from text, a segment in the notation above.
func (c *testConn) compare(out *Out, text string) {
	c.t.Helper()
	head, options, hasOptions := strings.Cut(text, "<")
	if hasOptions {
		if got := c.formatOptions(out); got != "<"+strings.TrimSpace(options) {
			c.t.Fatalf("%v: sends %s %s, want %s", c.at(), c.format(out), got, text)
		}
	}
	head = strings.TrimSpace(head)
	if i := strings.Index(head, " win "); i >= 0 {
		if got := c.number(strings.Fields(head[i:])[1]); got != uint32(out.Window) {
			c.t.Fatalf("%v: sends %s win %d, want %s", c.at(), c.format(out), out.Window, text)
		}
		head = head[:i]
	}
	if got := c.format(out); got != head {
		c.t.Fatalf("%v: sends %s, want %s", c.at(), got, text)
	}
	if out.Len > 0 && !out.Flags.Has(wire.SYN) && out.Off != uint64(out.Seq-c.iss)-1 && uint32(out.Off) != out.Seq-c.iss-1 {
		c.t.Fatalf("%v: %s has offset %d", c.at(), c.format(out), out.Off)
	}
	c.checkWire(out)
}

// checkWire checks that the header is unchanged after encoding and parsing.
func (c *testConn) checkWire(out *Out) {
	c.t.Helper()
	b := make([]byte, out.TCP.Len())
	out.TCP.Put(b)
	back, _, err := wire.ParseTCP(b)
	if err != nil || back.Seq != out.Seq || back.NumSACK != out.NumSACK || binary.BigEndian.Uint16(b[14:]) != out.Window {
		c.t.Fatalf("%v: %s %s does not survive the wire: %v", c.at(), c.format(out), c.formatOptions(out), err)
	}
}

func itoa[T ~int64 | ~int | ~uint32](n T) string { return strconv.FormatInt(int64(n), 10) }
