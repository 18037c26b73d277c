package ring

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"loam/abi/linux"
)

// bell is a Peer for tests: Wake and Wait of the two ends are connected by channels.
type bell struct {
	rings, other chan struct{} // sent by other.Wake, received by Wait; full: a Wake is pending
	gone, ended  chan struct{} // gone is closed by Close; ended is the field gone of the other bell
	once         sync.Once
	impatient    bool // Pause fails
}

func (b *bell) Wake() error {
	select {
	case <-b.ended:
		return io.ErrClosedPipe
	case b.other <- struct{}{}:
	default:
	}
	return nil
}

func (b *bell) Wait() error {
	select {
	case <-b.rings:
		return nil
	default:
	}
	select {
	case <-b.rings:
		return nil
	case <-b.ended:
		return io.EOF
	}
}

func (b *bell) Pause() error {
	select {
	case <-b.ended:
		return io.ErrClosedPipe
	default:
	}
	if b.impatient {
		return io.ErrShortWrite
	}
	return nil
}

func (b *bell) Yield() { runtime.Gosched() }

func (b *bell) Close() error {
	b.once.Do(func() { close(b.gone) })
	return nil
}

// pair returns the ends of a connection, and its memory.
func pair() (a, b *Conn, memory []byte) {
	memory = make([]byte, Size)
	one, two := make(chan struct{}, 1), make(chan struct{}, 1)
	gone1, gone2 := make(chan struct{}), make(chan struct{})
	a = New(memory, &bell{rings: one, other: two, gone: gone1, ended: gone2}, false)
	b = New(memory, &bell{rings: two, other: one, gone: gone2, ended: gone1}, true)
	return a, b, memory
}

// Bytes arrive complete and in order in both directions, whatever the lengths of reads and writes.
func TestStream(t *testing.T) {
	seed := rand.Uint64()
	a, b, _ := pair()
	var done sync.WaitGroup
	send := func(c *Conn, r *rand.Rand, text []byte) {
		for len(text) > 0 {
			n := min(len(text), 1+r.IntN(3*piece))
			if _, err := c.Write(text[:n]); err != nil {
				t.Error(err)
				return
			}
			text = text[n:]
		}
	}
	receive := func(c *Conn, r *rand.Rand, want []byte) {
		var got []byte
		p := make([]byte, 2*piece)
		for len(got) < len(want) {
			n, err := c.Read(p[:1+r.IntN(len(p)-1)])
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, p[:n]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("seed %d: other bytes have arrived than were sent", seed)
		}
	}
	for i, ends := range [][2]*Conn{{a, b}, {b, a}} {
		text := make([]byte, 5*room+i)
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for k := range text {
			text[k] = byte(r.Uint32())
		}
		done.Go(func() { send(ends[0], rand.New(rand.NewPCG(seed, 2)), text) })
		done.Go(func() { receive(ends[1], rand.New(rand.NewPCG(seed, 3)), text) })
	}
	done.Wait()
}

// Bytes that were sent before the sender closed its end are received, and then the end.
func TestEnd(t *testing.T) {
	a, b, _ := pair()
	if _, err := a.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if got, err := io.ReadAll(b); err != nil || string(got) != "last words" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := b.Write(make([]byte, room+1)); err == nil {
		t.Error("more than the ring holds is sent to a process that has ended")
	}
}

// TryRead does not wait, and Awake reports whether the receiver waits.
func TestTryRead(t *testing.T) {
	a, b, _ := pair()
	if n, err := b.TryRead(make([]byte, 1)); n != 0 || err != linux.EAGAIN {
		t.Errorf("%d, %v", n, err)
	}
	if !a.Awake() {
		t.Error("the receiver waits although it does not read")
	}
	got := make(chan byte) // sent by the reader, received below; never closed
	go func() {
		p := make([]byte, 1)
		b.Read(p)
		got <- p[0]
	}()
	for a.Awake() {
		a.Yield()
	}
	a.Write([]byte{7})
	if v := <-got; v != 7 || !a.Awake() {
		t.Errorf("%d has arrived", v)
	}
}

// An impossible position is an error of the connection.
func TestPosition(t *testing.T) {
	for _, far := range []uint64{room + 1, 1 << 40, 1<<64 - 1} {
		a, b, _ := pair()
		b.in.written.Store(far)
		if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, ErrPosition) {
			t.Errorf("written %d: %d, %v", far, n, err)
		}
		a.Write(make([]byte, room)) // the sender loads the position when the ring is full
		a.out.read.Store(room + 1 + far/2)
		if n, err := a.Write(make([]byte, 10)); n != 0 || !errors.Is(err, ErrPosition) {
			t.Errorf("read %d: %d, %v", far, n, err)
		}
	}
}

// FuzzMemory lets the other process write anything into the memory between calls.
func FuzzMemory(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, []byte("abc"))
	f.Add([]byte{128, 0, 1, 255}, make([]byte, 100))
	f.Fuzz(func(t *testing.T, damage, sent []byte) {
		a, b, memory := pair()
		a.Peer.(*bell).impatient = true
		for i := 0; i+3 < len(damage); i += 4 {
			memory[(int(damage[i])<<8|int(damage[i+1]))%headerRoom] = damage[i+2]
			a.Write(sent[:min(len(sent), int(damage[i+3]))])
			p := make([]byte, 2*room)
			if n, err := b.TryRead(p); n > room || n > 0 && err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
		}
	})
}
