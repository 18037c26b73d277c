package e1000e_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/e1000e"
	"loam/link/e1000e/model"
	"loam/link/linktest"
)

// once returns a function for Card.Next that lies about the first frame only.
func once(l model.Lie, number uint64) func() (model.Lie, uint64) {
	first := true
	return func() (model.Lie, uint64) {
		if !first {
			return model.Truth, 0
		}
		first = false
		return l, number
	}
}

// sendOne sends one frame of 100 bytes.
func sendOne(t testing.TB, e end, n uint32) {
	t.Helper()
	fs := []*link.Frame{linktest.Plain(link.Ethernet, 100, n)}
	if k, err := e.Queues()[0].Send(fs); err != nil || k != 1 {
		link.FreeAll(fs[k:])
		t.Fatalf("Send: %d, %v", k, err)
	}
}

// A card that reports frames incorrectly is not used any more, or only the damaged frame is lost. A later frame arrives,
// or Recv returns an error, in bounded time.
func TestHostile(t *testing.T) {
	const done, last, damaged = 1 << 32, 1 << 33, 1 << 40
	for name, test := range map[string]struct {
		lie    model.Lie
		number uint64
		want   error
		after  time.Duration
		errors uint64
	}{
		"too long":           {lie: model.Word, number: done | last | 2049, want: e1000e.ErrNonsense},
		"longest":            {lie: model.Word, number: done | last | 0xffff, want: e1000e.ErrNonsense},
		"longer than a card": {lie: model.Word, number: done | last | 2048, errors: 1},
		"no bytes":           {lie: model.Word, number: done | last, errors: 1},
		"damaged":            {lie: model.Word, number: done | last | damaged | 100, errors: 1},
		"endless":            {lie: model.Endless},
		"all, nonsense":      {lie: model.All, number: done | last | 5000, want: e1000e.ErrNonsense},
		"quiet":              {lie: model.Quiet, after: 2 * time.Second},
		"spurious":           {lie: model.Spurious},
		"vanishes":           {lie: model.Vanish, want: e1000e.ErrGone, after: time.Second},
	} {
		for kind, k := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x, y := newCards()
					y.Next = once(test.lie, test.number)
					a, b := openEnd(t, x, k, e1000e.Config{}), openEnd(t, y, k, e1000e.Config{})
					start := time.Now()
					received := make(chan error, 1) // the goroutine sends once
					go func() {
						in := make([]*link.Frame, 1)
						n, err := b.Queues()[0].Recv(in)
						link.FreeAll(in[:n])
						received <- err
					}()
					synctest.Wait() // Recv waits for an interrupt
					sendOne(t, a, 1)
					if test.lie == model.Endless || test.errors > 0 {
						synctest.Wait()
						sendOne(t, a, 2)
					}
					err := <-received
					if !errors.Is(err, test.want) || time.Since(start) > test.after {
						t.Errorf("Recv: %v after %v, want %v after at most %v", err, time.Since(start), test.want, test.after)
					}
					synctest.Wait()
					if test.want == e1000e.ErrNonsense && y.Master() {
						t.Error("after its failure, the card may still access memory")
					}
					if got := b.Stats().RxErrors; got != test.errors {
						t.Errorf("%d frames count as damaged, want %d", got, test.errors)
					}
				})
			})
		}
	}
}

// An interrupt of a received frame is not lost if another cause is handled before the card has sent its message.
func TestOtherCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := newCards()
		y.Next = once(model.Quiet, 0) // the message is delayed
		const cause, changed, received = 0xc0, 1 << 2, 1 << 20
		y.Change = func(register int, v uint32) uint32 {
			if register == cause && v&changed != 0 {
				v |= received
			}
			return v
		}
		a, b := openEnd(t, x, newer, e1000e.Config{}), openEnd(t, y, newer, e1000e.Config{})
		start := time.Now()
		go func() {
			synctest.Wait() // Recv waits for an interrupt
			sendOne(t, a, 1)
			y.SetLink(true)
		}()
		in := make([]*link.Frame, 1)
		n, err := b.Queues()[0].Recv(in)
		link.FreeAll(in[:n])
		if n != 1 || err != nil {
			t.Errorf("Recv: %d, %v", n, err)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("the frame arrives after %v", waited)
		}
	})
}

// A descriptor that is filled before its turn is not read: Recv waits, and Close ends it.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := newCards()
		y.Next = once(model.Ahead, 0)
		a, b := openEnd(t, x, newer, e1000e.Config{}), openEnd(t, y, newer, e1000e.Config{})
		sendOne(t, a, 1)
		received := make(chan error, 1) // the goroutine sends once
		go func() {
			_, err := b.Queues()[0].Recv(make([]*link.Frame, 1))
			received <- err
		}()
		time.Sleep(time.Minute)
		b.Close()
		if err := <-received; !errors.Is(err, link.ErrClosed) {
			t.Errorf("Recv: %v, want ErrClosed", err)
		}
	})
}

// If a card stops sending, Send finds the ring full, and the stall is counted. Close still returns.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := newCards()
		y.Next = once(model.Unsent, 0)
		a, _ := openEnd(t, x, newer, e1000e.Config{Depth: 64}), openEnd(t, y, newer, e1000e.Config{})
		fs := make([]*link.Frame, 100)
		for i := range fs {
			fs[i] = linktest.Plain(link.Ethernet, 100, uint32(i))
		}
		n, err := a.Queues()[0].Send(fs)
		link.FreeAll(fs[n:])
		if n >= 64 || err != nil {
			t.Errorf("Send: %d, %v", n, err)
		}
		time.Sleep(time.Minute)
		if c := a.Counters(); c.Stalls == 0 {
			t.Errorf("no stall is counted: %+v", c)
		}
	})
}

// Frames that the card had no room for are counted.
func TestMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t, newer, e1000e.Config{})
		a.card.Miss(3)
		time.Sleep(2 * time.Second)
		if got := a.Stats().RxDropped; got != 3 {
			t.Errorf("RxDropped = %d, want 3", got)
		}
	})
}

// Open returns an error for a card whose reset never ends, and one that does not respond. No memory is left allocated.
func TestRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *model.Card)
		want   error
	}{
		"stuck":   {func(c *model.Card) { c.Stuck = true }, e1000e.ErrReset},
		"gone":    {func(c *model.Card) { c.Change = func(int, uint32) uint32 { return ^uint32(0) } }, e1000e.ErrGone},
		"another": {nil, e1000e.ErrUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := newCards()
			k := newer
			if test.change != nil {
				test.change(c)
			} else {
				k.ID = 0x1533
			}
			e, err := tryOpen(c, k, e1000e.Config{})
			if !errors.Is(err, test.want) || e.machine.Held() != 0 {
				t.Errorf("%s: %v, %d bytes are kept", name, err, e.machine.Held())
			}
		})
	}
	for _, config := range []e1000e.Config{{Depth: 100}, {Depth: 32}, {Depth: 8192}, {MTU: 67}, {MTU: 9001}} {
		c, _ := newCards()
		if _, err := tryOpen(c, newer, config); err == nil {
			t.Errorf("%+v is allowed", config)
		}
	}
}

// No call hangs or panics, and no frame or memory is lost, if a card writes random descriptors and registers.
func FuzzCard(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0x64, 2, 1}, []byte{}, uint8(0))
	f.Add([]byte{4, 0x10, 3, 0, 6, 0, 8, 0}, []byte{8, 0, 0xc0, 0xff}, uint8(2))
	f.Fuzz(func(t *testing.T, lies, changes []byte, kind uint8) {
		link.Track(true)
		defer link.Track(false)
		all := []model.Kind{newer, kinds["82574L with MSI"], kinds["82574L with a line"], kinds["82540EM"]}
		k := all[int(kind)%len(all)]
		synctest.Test(t, func(t *testing.T) { fuzzCard(t, lies, changes, k) })
		if n := link.Outstanding(); n != 0 {
			t.Errorf("%d frames are leaked", n)
		}
	})
}

func fuzzCard(t *testing.T, lies, changes []byte, k model.Kind) {
	x, y := newCards()
	var mu sync.Mutex
	y.Next = func() (model.Lie, uint64) {
		mu.Lock()
		defer mu.Unlock()
		if len(lies) < 2 {
			return model.Truth, 0
		}
		l, n := model.Lie(lies[0])%model.Lies, uint64(lies[1])
		lies = lies[2:]
		return l, n<<5 | n<<32 | n<<41 // a length, the state, and errors
	}
	y.Change = func(register int, v uint32) uint32 {
		mu.Lock()
		defer mu.Unlock()
		for i := 0; i+3 < len(changes); i += 4 {
			if register == int(changes[i])|int(changes[i+1]&0x5f)<<8 {
				v ^= uint32(changes[i+2]) | uint32(changes[i+3])<<24
			}
		}
		return v
	}
	a := openEnd(t, x, k, e1000e.Config{Segment: true})
	b, err := tryOpen(y, k, e1000e.Config{Depth: 64})
	if err != nil {
		if n := b.machine.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
		return
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		in := make([]*link.Frame, 4)
		for {
			n, err := b.Queues()[0].Recv(in)
			link.FreeAll(in[:n])
			if err != nil {
				return
			}
		}
	})
	for i := range 100 {
		fs := []*link.Frame{linktest.Plain(link.Ethernet, 60+10*i, uint32(i))}
		n, _ := a.Queues()[0].Send(fs)
		link.FreeAll(fs[n:])
	}
	time.Sleep(time.Minute)
	b.Close()
	ended.Wait()
	if n := b.machine.Held(); n != 0 {
		t.Errorf("%d bytes of memory are kept", n)
	}
}
