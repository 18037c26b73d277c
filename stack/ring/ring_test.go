package ring

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loam/stack/tcp"
)

var (
	_ tcp.Outgoing = (*Send)(nil)
	_ tcp.Incoming = (*Receive)(nil)
)

// at returns the byte at offset off of every test stream, so that a test needs no copy of the stream. Its
// period and the chunk size are coprime.
func at(off uint64) byte { return byte(off%251) ^ byte(off>>12) }

// stream returns n bytes of every test stream, beginning at the offset off.
func stream(off uint64, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = at(off + uint64(i))
	}
	return p
}

// track counts chunks during a test, and fails the test if some are left at the end.
func track(t testing.TB) {
	Track(true)
	t.Cleanup(func() {
		if n := Outstanding(); n != 0 {
			t.Errorf("%d chunks were not given back", n)
		}
		Track(false)
	})
}

func wantPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

func wantHeld(t *testing.T, sentence string, want int) {
	t.Helper()
	if got := Outstanding(); got != want {
		t.Errorf("%s: %d chunks are held, want %d", sentence, got, want)
	}
}

func TestSendHoldsWhatIsNotAcknowledged(t *testing.T) {
	track(t)
	var q Send
	if q.Write([]byte("x")) != 0 {
		t.Error("a queue without a limit takes bytes")
	}
	q.SetLimit(10000)
	if n := q.Write(stream(0, 12000)); n != 10000 {
		t.Errorf("Write took %d bytes, want the limit of 10000", n)
	}
	wantHeld(t, "10000 bytes are in the queue", 3)
	q.Release(8192)
	wantHeld(t, "two chunks are acknowledged to their ends", 1)
	if q.Room() != 8192 || q.Len() != 1808 || q.End() != 10000 {
		t.Errorf("room %d, length %d, end %d", q.Room(), q.Len(), q.End())
	}
	p := make([]byte, 1808)
	q.ReadAt(p, 8192)
	if !bytes.Equal(p, stream(8192, 1808)) {
		t.Error("ReadAt returns other bytes than were written")
	}
	q.Release(100)
	if q.Len() != 1808 {
		t.Error("releasing again what is released makes a difference")
	}
	q.Release(10000)
	wantHeld(t, "everything is acknowledged", 0)
}

func TestSendLimitBelowWhatIsHeld(t *testing.T) {
	track(t)
	var q Send
	q.SetLimit(5000)
	q.Write(stream(0, 5000))
	q.SetLimit(1000)
	if q.Room() != 0 || q.Write([]byte("x")) != 0 {
		t.Error("a queue beyond its limit takes bytes")
	}
	q.Release(4500)
	if q.Room() != 500 {
		t.Errorf("room is %d after the release, want 500", q.Room())
	}
	q.Release(5000)
}

func TestSendBrokenInvariantsPanic(t *testing.T) {
	var q Send
	q.SetLimit(100)
	q.Write(stream(0, 100))
	q.Release(50)
	wantPanic(t, "reading what is released", func() { q.ReadAt(make([]byte, 1), 49) })
	wantPanic(t, "reading beyond the end", func() { q.ReadAt(make([]byte, 2), 99) })
	wantPanic(t, "releasing what is not written", func() { q.Release(101) })
	q.Reset()
	wantPanic(t, "reading after Reset", func() { q.ReadAt(make([]byte, 1), 50) })
}

func TestSendAfterReset(t *testing.T) {
	track(t)
	var q Send
	q.SetLimit(10000)
	q.Write(stream(0, 6000))
	q.Reset()
	wantHeld(t, "the queue is given up", 0)
	if q.Write([]byte("x")) != 0 || q.Room() != 0 || q.Len() != 0 {
		t.Error("a queue that is given up takes bytes")
	}
	q.Release(6000)
	q.Reset()
	q.SetLimit(10000)
	if q.Limit() != 0 || q.Room() != 0 || q.Write([]byte("x")) != 0 {
		t.Error("a queue that is given up gets a limit again")
	}
}

func TestReceiveOutOfOrder(t *testing.T) {
	track(t)
	var q Receive
	q.WriteAt(stream(5000, 1000), 5000)
	if q.Readable() != 0 {
		t.Error("bytes behind a hole are readable")
	}
	wantHeld(t, "a segment lies across a chunk's end, behind a hole", 1)
	q.WriteAt(stream(0, 5000), 0)
	q.Commit(6000)
	if q.Readable() != 6000 {
		t.Errorf("%d bytes are readable once the hole is filled, want 6000", q.Readable())
	}
	p := make([]byte, 7000)
	if n := q.Peek(p, 4000); n != 2000 || !bytes.Equal(p[:n], stream(4000, 2000)) {
		t.Errorf("Peek shows %d bytes, want the last 2000", n)
	}
	if q.Peek(p, 6000) != 0 {
		t.Error("Peek shows bytes behind the last")
	}
	if n := q.Discard(4500); n != 4500 || q.Consumed() != 4500 {
		t.Errorf("Discard took %d bytes", n)
	}
	wantHeld(t, "the first chunk is consumed", 1)
	if n := q.Read(p); n != 1500 || !bytes.Equal(p[:n], stream(4500, 1500)) {
		t.Errorf("Read returned %d bytes, want the last 1500", n)
	}
	if q.Discard(1) != 0 {
		t.Error("Discard takes bytes that are not there")
	}
}

func TestReceiveKeepsPiecesWhenTheReadablePartIsDrained(t *testing.T) {
	track(t)
	var q Receive
	q.WriteAt(stream(0, 100), 0)
	q.WriteAt(stream(200, 100), 200)
	q.Commit(100)
	q.Read(make([]byte, 100))
	wantHeld(t, "all that is readable was read, but a piece waits behind a hole", 1)
	q.WriteAt(stream(100, 100), 100)
	q.Commit(300)
	p := make([]byte, 200)
	if n := q.Read(p); n != 200 || !bytes.Equal(p, stream(100, 200)) {
		t.Error("the piece was lost")
	}
}

func TestReceiveOneBytePerChunk(t *testing.T) {
	track(t)
	var q Receive
	const window = 1 << 20
	for off := uint64(1); off < window; off += chunkSize {
		q.WriteAt(stream(off, 1), off)
	}
	wantHeld(t, "a window of sparse bytes", window/chunkSize)
	q.Reset()
	wantHeld(t, "the queue is given up", 0)
	q.WriteAt(stream(0, 10), 0)
	q.Commit(10)
	if q.Readable() != 0 || q.Read(make([]byte, 10)) != 0 {
		t.Error("a queue that is given up has bytes to read")
	}
}

func TestReceiveBrokenInvariantsPanic(t *testing.T) {
	var q Receive
	q.WriteAt(stream(0, 10), 0)
	q.Commit(10)
	q.Commit(5) // a number of bytes that was committed before
	wantPanic(t, "writing over committed bytes", func() { q.WriteAt([]byte{1}, 9) })
	wantPanic(t, "committing what is not stored", func() { q.Commit(11) })
	q.Reset()
}

// commands decodes a program for the drivers below: a byte for the operation and two for the amount.
func commands(program []byte, do func(op byte, n int)) {
	for ; len(program) >= 3; program = program[3:] {
		do(program[0], int(program[1])<<8|int(program[2]))
	}
}

func randomProgram(seed uint64, length int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	p := make([]byte, 3*length)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// runSend compares a Send with a model of three numbers.
func runSend(t *testing.T, program []byte) {
	track(t)
	var q Send
	var released, end uint64
	limit := 0
	commands(program, func(op byte, n int) {
		switch op % 4 {
		case 0:
			limit = 4 * n
			q.SetLimit(limit)
		case 1:
			took := q.Write(stream(end, n))
			if want := min(n, max(0, limit-int(end-released))); took != want {
				t.Fatalf("Write took %d of %d, want %d", took, n, want)
			}
			end += uint64(took)
		case 2:
			released += min(uint64(n), end-released)
			q.Release(released)
		case 3:
			off := released + min(uint64(op)<<8, end-released)
			p := make([]byte, min(uint64(n), end-off))
			if q.ReadAt(p, off); !bytes.Equal(p, stream(off, len(p))) {
				t.Fatalf("ReadAt(%d bytes, %d) differs", len(p), off)
			}
		}
		if q.End() != end || q.Len() != int(end-released) {
			t.Fatalf("end %d, length %d, want %d, %d", q.End(), q.Len(), end, end-released)
		}
		if held := int(end/chunkSize-released/chunkSize) + 1; Outstanding() > held {
			t.Fatalf("%d chunks are held, want %d at most", Outstanding(), held)
		}
	})
	q.Release(end)
	wantHeld(t, "everything is released", 0)
}

// runReceive compares a Receive with a model that marks the offsets that have arrived.
func runReceive(t *testing.T, program []byte) {
	track(t)
	var q Receive
	var consumed, committed, top uint64
	arrived := map[uint64]bool{}
	lender := &lender{}
	commands(program, func(op byte, n int) {
		switch op % 5 {
		case 4: // bytes in order, in a frame that the ring keeps (lent)
			p := stream(committed, n%3000)
			if !q.Lend(p, committed, lender) {
				if lender.out < maxLoans && len(p) > 0 {
					t.Fatalf("%d loans, and no more are taken", lender.out)
				}
				break
			}
			lender.out++
			top = max(top, committed+uint64(len(p)))
			for i := range uint64(len(p)) {
				arrived[committed+i] = true
			}
			for arrived[committed] {
				committed++
			}
			q.Commit(committed)
		case 0: // bytes out of order
			off := committed + uint64(op)*uint64(n)%100000
			q.WriteAt(stream(off, n%3000), off)
			for i := range uint64(n % 3000) {
				arrived[off+i] = true
				top = max(top, off+i+1)
			}
		case 1: // bytes in order, which join the data that waits behind them
			q.WriteAt(stream(committed, n%3000), committed)
			top = max(top, committed+uint64(n%3000))
			for i := range uint64(n % 3000) {
				arrived[committed+i] = true
			}
			for arrived[committed] {
				committed++
			}
			q.Commit(committed)
		case 2:
			p := make([]byte, n)
			got := q.Read(p)
			if !bytes.Equal(p[:got], stream(consumed, int(min(uint64(n), committed-consumed)))) {
				t.Fatalf("Read(%d) at %d returned %d bytes that differ", n, consumed, got)
			}
			consumed += uint64(got)
		case 3:
			p := make([]byte, n)
			skip := int(op) << 4
			got := q.Peek(p, skip)
			want := max(0, min(n, int(committed-consumed)-skip))
			if !bytes.Equal(p[:got], stream(consumed+uint64(skip), want)) {
				t.Fatalf("Peek(%d, %d) at %d differs", n, skip, consumed)
			}
			consumed += uint64(q.Discard(n / 8))
		}
		if q.Consumed() != consumed || q.Readable() != int(committed-consumed) {
			t.Fatalf("consumed %d, readable %d", q.Consumed(), q.Readable())
		}
		if consumed == top {
			wantHeld(t, "everything is read", 0)
			if lender.out != 0 {
				t.Fatalf("%d loans are not given back, though everything is read", lender.out)
			}
		}
	})
	q.Reset()
	if lender.out != 0 {
		t.Errorf("%d loans are not given back", lender.out)
	}
}

// lender counts loans.
type lender struct{ out int }

func (l *lender) Free() { l.out-- }

func TestLoan(t *testing.T) {
	track(t)
	var q Receive
	lender := &lender{out: 2}
	q.WriteAt(stream(0, 100), 0)
	if q.Lend(stream(100, 5000), 100, lender) {
		t.Error("bytes are lent behind others that are not committed")
	}
	q.Commit(100)
	if q.Lend(stream(200, 5000), 200, lender) {
		t.Error("bytes behind a hole are lent")
	}
	if !q.Lend(stream(100, 50_000), 100, lender) {
		t.Fatal("bytes in order are refused")
	}
	q.Commit(50_100)
	wantHeld(t, "what is lent takes no chunk", 1)
	p := make([]byte, 60_000)
	if n := q.Peek(p, 200); !bytes.Equal(p[:n], stream(200, 49_900)) {
		t.Errorf("Peek shows %d bytes, or others", n)
	}
	if n := q.Read(p[:40_000]); !bytes.Equal(p[:n], stream(0, 40_000)) || lender.out != 2 {
		t.Errorf("Read returned %d bytes, or others; %d loans", n, lender.out)
	}
	q.WriteAt(stream(50_100, 10), 50_100)
	q.Commit(50_110)
	if n := q.Read(p); !bytes.Equal(p[:n], stream(40_000, 10_110)) || lender.out != 1 {
		t.Errorf("Read returned %d bytes, or others; %d loans", n, lender.out)
	}
	q.Lend(stream(50_110, 100), 50_110, lender)
	q.Reset()
	if lender.out != 0 {
		t.Error("what is lent is not given back by Reset")
	}
	if q.Lend(stream(50_210, 100), 50_210, lender) {
		t.Error("a queue that is given up takes more")
	}
}

func TestSendAgainstModel(t *testing.T) {
	for seed := range uint64(10) {
		t.Run("", func(t *testing.T) { runSend(t, randomProgram(seed, 300)) })
	}
}

func TestReceiveAgainstModel(t *testing.T) {
	for seed := range uint64(10) {
		t.Run("", func(t *testing.T) { runReceive(t, randomProgram(seed, 200)) })
	}
}

func FuzzSend(f *testing.F) {
	f.Add(randomProgram(1, 30))
	f.Fuzz(func(t *testing.T, program []byte) { runSend(t, program[:min(len(program), 600)]) })
}

func FuzzReceive(f *testing.F) {
	f.Add(randomProgram(1, 30))
	f.Fuzz(func(t *testing.T, program []byte) { runReceive(t, program[:min(len(program), 600)]) })
}
