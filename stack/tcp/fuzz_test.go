package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"loam/stack/plpmtud"
	"loam/stack/tcp/congestion"
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// FuzzConn feeds a connection with events decoded from bytes: segments with numbers near the critical ones,
// writes, reads, timers, and calls of the program. After each event the invariants must hold.
func FuzzConn(f *testing.F) {
	f.Add([]byte{0})
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b := make([]byte, 600)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[0] = byte(seed)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 3000 {
			return
		}
		x := newFuzzer(t, b)
		for len(x.b) > 0 && !x.c.Done() {
			x.event()
			x.check()
		}
	})
}

// fuzzer decodes events from bytes.
type fuzzer struct {
	t    *testing.T
	b    []byte
	c    *Conn
	now  Time
	out  outStream
	in   inStream
	edge Seq // right edge of the receive window that the connection has announced
	told bool
	sent Seq // end of the data sent
}

func (x *fuzzer) byte() int {
	if len(x.b) == 0 {
		return 0
	}
	v := x.b[0]
	x.b = x.b[1:]
	return int(v)
}

func newFuzzer(t *testing.T, b []byte) *fuzzer {
	x := &fuzzer{t: t, b: b, now: time.Hour}
	x.in = inStream{t: t, discard: true}
	k := x.byte()
	cfg := &Config{
		NoSACK: k&1 != 0, NoTimestamps: k&2 != 0, NoWindowScale: k&4 != 0, NoDelay: k&8 != 0, ECN: ECNMode(k >> 4 & 1),
		Counters: new(Counters), ReceiveBuffer: x.byte() << 8, MaxReceiveBuffer: x.byte() << 10,
		Retries: 1 + x.byte()&7, KeepAlive: Time(x.byte()&1) * time.Second, UserTimeout: Time(x.byte()&1) * 3 * time.Second,
	}
	if k&64 != 0 {
		cfg.Congestion = congestion.NewReno
	}
	if k&32 != 0 {
		cfg.Probing.Mode = plpmtud.Always
	}
	iss := uint32(x.byte())<<24 - 3000
	if k&128 != 0 {
		x.c = Dial(x.now, cfg, testID, iss, 5, 1460, &x.out, &x.in)
	} else {
		syn := x.segment()
		syn.Flags = wire.SYN | syn.Flags&(wire.ECE|wire.CWR)
		x.c = Accept(x.now, cfg, testID, iss, 5, 1460, syn, &x.out, &x.in)
	}
	x.in.conn = x.c
	x.sent = x.c.snd.nxt
	if x.byte()&7 != 0 {
		x.open(k)
	}
	return x
}

// open completes the handshake as a correct peer would, so that most runs test what follows it.
func (x *fuzzer) open(k int) {
	x.poll(1)
	s := x.segment()
	s.Flags, s.Payload = wire.ACK, nil
	s.Seq, s.Ack = uint32(x.c.rcv.nxt), uint32(x.c.snd.nxt)
	s.TSVal, s.TSEcr = x.c.ts.recent+1, x.c.ts.clock(x.now)
	s.HasTimestamps = s.HasTimestamps || x.c.ts.on
	if k&128 != 0 {
		s.Flags |= wire.SYN
	}
	s.Window |= 1 << 12
	x.now += Time(x.byte()) * ms
	x.c.Receive(x.now, s)
}

// near returns a sequence number at or near one of the given ones.
func (x *fuzzer) near(places ...Seq) uint32 {
	k := x.byte()
	s := places[k%len(places)]
	switch k >> 4 {
	case 0:
		s += Seq(x.byte())
	case 1:
		s -= Seq(x.byte())
	case 2:
		s += Seq(x.byte()) * 536
	case 3:
		s += Seq(x.byte()) << 16
	case 4:
		s += Seq(x.byte()) << 24
	}
	return uint32(s)
}

// segment returns a segment that a peer or an attacker might send.
func (x *fuzzer) segment() *Segment {
	var s Segment
	c := x.c
	if c == nil {
		c = new(Conn)
	}
	s.Flags = wire.ACK
	if k := x.byte(); k > 150 {
		s.Flags = wire.TCPFlags(k&1<<8|x.byte()) & 0x1ff
	}
	s.Seq = x.near(c.rcv.nxt, c.rcv.nxt, c.rcv.nxt, c.rcv.edge, c.rcv.irs)
	s.Ack = x.near(c.snd.una, c.snd.nxt, c.snd.nxt, c.snd.iss)
	s.Window = uint16(x.byte()) << (x.byte() & 8)
	if k := x.byte(); k > 100 {
		s.Payload = make([]byte, (k-100)*x.byte()/16)
	}
	s.CE = x.byte() == 7
	s.MSS = uint16(x.byte() * 8)
	s.SACKPermitted = x.byte()&1 == 0
	s.HasWindowScale, s.WindowScale = x.byte()&1 == 0, uint8(x.byte())&15
	if s.HasTimestamps = x.byte() < 200; s.HasTimestamps {
		s.TSVal = x.near(Seq(c.ts.recent), Seq(c.ts.recent+1))
		s.TSEcr = x.near(Seq(c.ts.clock(x.now)), Seq(c.rec.stamp))
	}
	s.Urgent = s.Window ^ uint16(s.Seq)
	s.NumSACK = uint8(x.byte() % 5)
	for i := range s.NumSACK {
		s.SACK[i].Left = x.near(c.snd.una, c.snd.una, c.snd.nxt, c.rack.fack)
		s.SACK[i].Right = x.near(c.snd.nxt, Seq(s.SACK[i].Left), Seq(s.SACK[i].Left))
	}
	return &s
}

// event generates one event.
func (x *fuzzer) event() {
	switch k := x.byte(); {
	case k < 110:
		x.c.Receive(x.now, x.segment())
	case k < 150:
		x.poll(1 + x.byte()&7)
	case k < 170:
		x.out.end += uint64(x.byte()) << (x.byte() & 7)
		if x.c.WriteClosed() {
			x.out.end = x.c.snd.end
		}
		x.c.Written(x.now)
	case k < 190:
		x.in.consumed += (x.in.committed - x.in.consumed) * uint64(x.byte()) / 255
		x.c.Consumed(x.now)
	case k < 210:
		x.now += Time(x.byte()) * ms / 4
	case k < 230:
		if x.c.Deadline() != Never {
			x.now = max(x.now, x.c.Deadline())
		}
	case k < 235:
		x.c.ICMP(x.now, ICMPKind(x.byte()%3), x.near(x.c.snd.una, x.c.snd.nxt), x.byte()*8)
	case k < 250:
		x.setting(k)
	case k < 253:
		x.c.CloseWrite(x.now)
	case k < 255:
		x.c.Close(x.now)
	default:
		x.c.Abort(x.now)
	}
	if x.c.Deadline() <= x.now {
		x.c.Tick(x.now)
		if x.c.Deadline() <= x.now {
			x.t.Fatalf("Tick leaves a deadline that has passed: %v", x.c.timers)
		}
	}
}

func (x *fuzzer) setting(k int) {
	on := x.byte()&1 != 0
	switch k {
	case 235, 236:
		x.c.SetNoDelay(x.now, on)
	case 237:
		x.c.SetCork(x.now, on)
	case 238:
		x.c.SetMore(x.now, on)
	case 239:
		x.c.SetQuickAck(x.now, on)
	case 240:
		x.c.SetMaxReceiveBuffer(x.now, x.byte()<<8)
	case 241:
		x.c.SetMSS(x.now, x.byte()*8)
	case 242:
		x.c.SetKeepAlive(x.now, Time(x.byte())*ms, ms, 2)
	case 243:
		x.c.SetUserTimeout(x.now, Time(x.byte())*ms)
	case 244:
		x.c.SetUrgent(x.out.end + uint64(x.byte()))
	default:
		x.c.Info(x.now)
	}
}

// poll sends up to n segments and checks them.
func (x *fuzzer) poll(n int) {
	c := x.c
	burst := []int{1, 1460, 20_000, 65_000}[x.byte()&3]
	for range n {
		var out Out
		c.snd.burst = uint32(burst) // Pending depends on the last frame size of the owner
		if pending := c.Pending(x.now); pending != c.Poll(x.now, burst, &out) {
			x.t.Fatalf("Pending %v, then not", pending)
		} else if !pending {
			return
		}
		x.promised(&out, burst)
		checkInvariants(x.t, c)
	}
}

func (x *fuzzer) promised(out *Out, burst int) {
	c := x.c
	end := Seq(out.Seq).Add(out.Len)
	if out.Flags.Has(wire.FIN) {
		end++
	}
	if out.Len > 0 && x.sent.Less(end) && c.snd.una.Add(int(c.snd.wnd)).Less(end) {
		x.t.Fatalf("sends beyond the peer's window: %d, edge %d", end, c.snd.una.Add(int(c.snd.wnd)))
	}
	if out.Len > max(burst, int(c.snd.advMSS)) || out.Len > out.MSS && burst < out.MSS {
		x.t.Fatalf("a frame of %d bytes, the owner takes %d", out.Len, burst)
	}
	if out.Off+uint64(out.Len) > c.snd.end && out.Len > 0 {
		x.t.Fatalf("sends bytes %d to %d, %d are written", out.Off, out.Off+uint64(out.Len), c.snd.end)
	}
	if out.TCP.Len()+min(out.Len, out.MSS) > 1460+wire.TCPMinLen {
		x.t.Fatalf("a segment of %d bytes", out.TCP.Len()+out.Len)
	}
	x.sent = sequence.Max(x.sent, end)
	if out.Flags&(wire.ACK|wire.RST) != wire.ACK {
		return
	}
	if out.Flags.Has(wire.SYN) && out.Window == maxUnscaled {
		return // a repeated SYN cannot announce more (RFC 7323 section 2.2)
	}
	wnd := int(out.Window)
	if !out.Flags.Has(wire.SYN) {
		wnd <<= c.rcv.scale
	}
	told := Seq(out.Ack).Add(wnd)
	if x.told && told.Less(x.edge) && c.rcv.nxt != x.edge && !c.rcv.closed {
		x.t.Fatalf("the right edge moves from %d to %d", x.edge, told)
	}
	if !x.told {
		x.edge, x.told = told, true
	}
	x.edge = sequence.Max(x.edge, told)
}

func (x *fuzzer) check() {
	c := x.c
	checkInvariants(x.t, c)
	if x.out.released > x.out.end || x.in.committed != c.rcv.off {
		x.t.Fatalf("released %d of %d, committed %d of %d", x.out.released, x.out.end, x.in.committed, c.rcv.off)
	}
	if c.window.Size > maxWindow+1<<20 {
		x.t.Fatalf("congestion window of %d", c.window.Size)
	}
	if c.state == Closed && (c.sent.buf != nil || c.rcv.behind != nil) {
		x.t.Fatal("memory kept in CLOSED")
	}
}
