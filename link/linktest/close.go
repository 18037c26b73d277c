package linktest

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"loam/link"
)

// Close wakes every Recv and closes every Room. After it, Send and Recv return ErrClosed.
func testCloseWakes(t *testing.T, p *pair) {
	var woken sync.WaitGroup
	for _, q := range p.a.Queues() {
		woken.Go(func() {
			if n, err := q.Recv(make([]*link.Frame, 1)); n != 0 || !errors.Is(err, link.ErrClosed) {
				t.Errorf("Recv = %d, %v; want 0, ErrClosed", n, err)
			}
		})
		woken.Go(func() {
			for range q.Room() { // ends when the channel is closed
			}
		})
	}
	for range 100 { // let the goroutines park; they must return in any case
		runtime.Gosched()
	}
	closeEnd(t, p.a)
	woken.Wait()
	checkClosed(t, p.a)
}

func checkClosed(t *testing.T, d link.Device) {
	t.Helper()
	for _, q := range d.Queues() {
		f := Plain(d.Info().Medium, 100, 0)
		if n, err := q.Send([]*link.Frame{f}); n != 0 || !errors.Is(err, link.ErrClosed) {
			t.Errorf("Send = %d, %v; want 0, ErrClosed", n, err)
			continue
		}
		f.Free()
		if n, err := q.Recv(make([]*link.Frame, 1)); n != 0 || !errors.Is(err, link.ErrClosed) {
			t.Errorf("Recv = %d, %v; want 0, ErrClosed", n, err)
		}
	}
}

// Close may be called again, also from several goroutines.
func testCloseTwice(t *testing.T, p *pair) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { closeEnd(t, p.a) })
		all.Go(func() { closeEnd(t, p.b) })
	}
	all.Wait()
	closeEnd(t, p.a)
	checkClosed(t, p.a)
}

// Frames still in a device when it is closed are freed. Run checks that.
func testCloseFull(t *testing.T, p *pair) {
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		for range 8 {
			for len(f.out) < link.BatchSize {
				f.out = append(f.out, Plain(f.medium, 500, 0))
			}
			f.send(t)
		}
		link.FreeAll(f.out)
	}
}

// Close may be called at any time while frames flow.
func testCloseRace(t *testing.T, p *pair) {
	var all sync.WaitGroup
	started := make(chan struct{}, 8) // each sender sends once, after its first frames
	senders := 0
	for _, d := range p.directions() {
		f := newFlow(d[0], d[1], 0)
		senders++
		all.Go(func() {
			for first := true; ; first = false {
				batch := make([]*link.Frame, 8)
				for i := range batch {
					batch[i] = Plain(f.medium, 200, uint32(i))
				}
				n, err := push(f.from, batch)
				link.FreeAll(batch[n:])
				if first {
					started <- struct{}{}
				}
				if err != nil {
					return
				}
			}
		})
		all.Go(func() {
			for {
				n, err := f.to.Recv(f.in)
				link.FreeAll(f.in[:n])
				if err != nil {
					return
				}
			}
		})
	}
	for range senders {
		<-started
	}
	all.Go(func() { closeEnd(t, p.a) })
	all.Go(func() { closeEnd(t, p.b) })
	all.Wait()
}

// When one end is closed, the other end receives some or all of the frames sent before, in order,
// and then ErrClosed.
func testClosePeer(t *testing.T, p *pair) {
	if p.alone() {
		return
	}
	const count = 4
	f := newFlow(p.a, p.b, 0)
	for i := range count {
		f.out = append(f.out, Plain(f.medium, 100, uint32(i)))
	}
	f.send(t)
	link.FreeAll(f.out)
	closeEnd(t, p.a)
	arrived := 0
	for {
		n, err := f.to.Recv(f.in)
		for _, frame := range f.in[:n] {
			checkPlain(t, f.medium, frame, 100, uint32(arrived))
			arrived++
		}
		if err != nil {
			if !errors.Is(err, link.ErrClosed) {
				t.Errorf("Recv: %v, want ErrClosed", err)
			}
			break
		}
	}
	if arrived > count {
		t.Errorf("%d frames arrived, %d were sent", arrived, count)
	}
}
