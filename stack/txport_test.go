package stack

import (
	"testing"
	"testing/synctest"

	"loam/link"
)

// scriptQueue is a device queue with as much room as the test sets. As required by
// link.Queue, it signals room only after a Send that did not take all frames.
type scriptQueue struct {
	room  int
	sent  int
	short bool
	bell  chan struct{} // the test sends one value each time the device has room again; the test closes the channel
}

func (q *scriptQueue) Recv([]*link.Frame) (int, error) { return 0, link.ErrClosed }
func (q *scriptQueue) Room() <-chan struct{}           { return q.bell }

func (q *scriptQueue) Send(fs []*link.Frame) (int, error) {
	n := min(q.room, len(fs))
	link.FreeAll(fs[:n])
	q.room -= n
	q.sent += n
	q.short = n < len(fs)
	return n, nil
}

// ring makes room and signals it if a signal is due.
func (q *scriptQueue) ring(room int) {
	q.room = room
	if q.short {
		q.bell <- struct{}{}
	}
	synctest.Wait()
}

// A sender that finds no room waits until the earlier senders have sent their frames. A Send by another sender in
// between would cancel the room signal.
func TestTxPortLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		q := &scriptQueue{room: 2, bell: make(chan struct{}, 1)}
		p := &txPort{queue: q}
		go p.loop()
		newLink := func() *txLink {
			sh := &shard{inbox: newInbox()}
			return &txLink{shard: sh, port: p, goOn: func(*shard) {}}
		}
		woken := func(l *txLink) int { return len(l.shard.inbox.in.requests) }
		frames := func(n int) []*link.Frame {
			fs := make([]*link.Frame, n)
			for i := range fs {
				fs[i] = link.NewFrame(60)
			}
			return fs
		}
		first, second := newLink(), newLink()
		fs := frames(3)
		if n, err := p.send(first, fs); n != 2 || err != nil {
			t.Fatalf("the first sent %d frames, %v; want 2", n, err)
		}
		fs = fs[2:]
		q.room = 1 // less room than that for which the device signals
		one := frames(1)
		if n, _ := p.send(second, one); n != 0 {
			t.Errorf("the second sent %d frames while the first waits", n)
		}
		if !p.sendControl(link.NewFrame(60)) || q.sent != 2 {
			t.Error("a frame of the interface did not wait")
		}
		q.ring(2)
		if q.sent != 3 || woken(first) != 1 || woken(second) != 1 {
			t.Errorf("room for two: %d frames sent, want the interface's; woken %d and %d times, want once",
				q.sent, woken(first), woken(second))
		}
		for i, l := range []*txLink{first, second} {
			if n, _ := p.send(l, [][]*link.Frame{fs, one}[i]); n != 1-i {
				t.Errorf("link %d sent %d frames, want %d", i, n, 1-i)
			}
		}
		q.ring(10)
		if woken(second) != 2 {
			t.Error("the second was not woken again")
		}
		if n, _ := p.send(second, one); n != 1 {
			t.Errorf("the second sent %d frames, want 1", n)
		}
		q.room = 0
		p.sendControl(link.NewFrame(60))
		close(q.bell)
		synctest.Wait()
		p.sendControl(link.NewFrame(60))
		if _, err := p.send(first, nil); err != link.ErrClosed {
			t.Errorf("sending to a device that has gone: %v, want %v", err, link.ErrClosed)
		}
		if n := link.Outstanding(); n != 0 {
			t.Errorf("%d frames are left behind", n)
		}
	})
}
