package stack

import (
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/pipe"
)

// turnPair returns a connection between two idle stacks. The function sent returns how
// many TCP segments the first stack has sent.
func turnPair(t *testing.T) (client *TCPConn, sent func() uint64) {
	t.Helper()
	a, b := pipe.New(pipe.Config{Offloads: pipe.AllOffloads})
	hosts := [2]*Stack{}
	for i, dev := range []link.Device{a, b} {
		s := New(Config{Shards: 1})
		t.Cleanup(func() { s.Close() })
		if _, err := s.Attach(dev, InterfaceConfig{Name: "eth0"}); err != nil {
			t.Fatal(err)
		}
		if err := s.AddAddress("eth0", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)); err != nil {
			t.Fatal(err)
		}
		hosts[i] = s
	}
	l, err := hosts[1].Listen("tcp", "10.0.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	c, err := hosts[0].Dial("tcp", "10.0.0.2:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // waits until delayed acknowledgments have been sent
	synctest.Wait()
	tally := &hosts[0].shards[0].tally
	return c.(*TCPConn), func() uint64 { return tally[TCPSent].Load() }
}

// A small write, before which nothing is queued, is sent by the calling goroutine before the call returns. The
// shard's own loop sends a large write, and a write that follows another one in the queue.
func TestWriteDoesTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent := turnPair(t)
		c.shard.owner.Lock() // the shard is busy: the test holds its lock
		before := sent()
		if n, err := c.TryWrite([]byte("a")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n := sent() - before; n != 0 {
			t.Errorf("%d segments were sent in somebody else's turn", n)
		}
		c.shard.owner.Unlock()
		time.Sleep(time.Second)
		if n := sent() - before; n != 1 {
			t.Errorf("%d segments were sent after that turn, want 1", n)
		}
		before = sent()
		if n, err := c.TryWrite([]byte("b")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n := sent() - before; n != 1 {
			t.Errorf("%d segments had been sent when a small write returned, want 1", n)
		}
		time.Sleep(time.Second)
	})
}

// With TCP_CORK, only the first of several small writes is a turn. The writing goroutine sends the data when it clears the option.
func TestCorkedWritesDoNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent := turnPair(t)
		c.SetOptions(func(o *TCPOptions) { o.Cork = true })
		c.TryWrite([]byte("head"))
		synctest.Wait()
		if c.sawEnd != c.toSend.End() || c.corked.Load() == 0 {
			t.Fatal("the shard has not noticed the first write")
		}
		before, seen := sent(), c.sawEnd
		for range 10 {
			c.TryWrite([]byte("and body"))
		}
		synctest.Wait()
		if c.sawEnd != seen {
			t.Error("the shard has noticed a write that can send nothing")
		}
		c.SetOptions(func(o *TCPOptions) { o.Cork = false })
		if n := sent() - before; n != 1 {
			t.Errorf("%d segments had been sent when the option was cleared, want 1", n)
		}
		if c.corked.Load() != 0 {
			t.Error("the next write would not notify the shard")
		}
		time.Sleep(time.Second)
	})
}

// A small read of the last bytes does the turn. A read that leaves data unread is one of many, and leaves the turn to the loop.
func TestLastReadDoesTheTurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the shard's loop runs only if this goroutine blocks
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		l, err := s.Listen("tcp", "127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Dial("tcp", "127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c, b := accepted.(*TCPConn), make([]byte, smallRead)
		d.Write(make([]byte, 2*smallRead))
		time.Sleep(time.Second) // waits until delayed acknowledgments have been sent
		for _, test := range []struct {
			name string
			here bool
		}{{"more is unread", false}, {"nothing is unread", true}} {
			synctest.Wait()
			c.notify.Store(0) // the peer must get a segment for each read
			if n, err := c.TryRead(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
			if here := c.wish.Load()&wishServe == 0; here != test.here {
				t.Errorf("%s: the reader did the turn: %v", test.name, here)
			}
		}
	})
}

// A receiver leaves a batch to the loop if it is large, or would overtake a batch that
// the loop has not processed.
func TestInputNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Shards: 1})
		defer s.Close()
		sh := s.shards[0]
		synctest.Wait()
		one := func(length int) *batch {
			b := newBatch()
			b.packets[0].frame, b.n = link.NewFrame(length), 1
			return b
		}
		if b := one(lightBytes + 1); sh.inputNow(b) {
			t.Error("a receiver took on much")
		} else {
			b.freeAll()
		}
		sh.queued.Add(1)
		if b := one(60); sh.inputNow(b) {
			t.Error("a batch overtook another")
		} else {
			b.freeAll()
		}
		sh.queued.Add(-1)
		if b := one(60); !sh.inputNow(b) {
			t.Error("a receiver did not take on little, of a shard at rest")
			b.freeAll()
		}
	})
}
